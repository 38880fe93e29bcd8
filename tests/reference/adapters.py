"""Adapters that PEFT writes, opens and trains on PyTorch: what ours are compared with."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np

from tests.reference import pretrained

__all__ = ["logits", "train", "write"]


def _peft() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import peft
    return peft


def write(name: str, base: Path, folder: Path, targets: list[str], **settings: Any) -> np.ndarray:
    """Write an adapter with random values for the model in ``base``; return the logits with it of tokens 3 to 8."""
    import torch

    peft, model = _peft(), pretrained.open_folder(name, base)
    torch.manual_seed(3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = peft.get_peft_model(model, peft.LoraConfig(target_modules=targets, **settings)).eval()
        with torch.no_grad():
            for key, x in model.named_parameters():
                if "lora_" in key:
                    x.add_(torch.randn_like(x) * 0.2)
        model.save_pretrained(folder)
        return _logits(model)


def logits(name: str, base: Path, folder: Path) -> np.ndarray:
    """Open an adapter with PEFT; return the logits of tokens 3 to 8."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _logits(_peft().PeftModel.from_pretrained(pretrained.open_folder(name, base), folder).eval())


def _logits(model: Any) -> np.ndarray:
    import torch

    with torch.no_grad():
        return model(torch.tensor([[3, 4, 5], [6, 7, 8]]))[0].numpy()


def train(name: str, base: Path, folder: Path, batches: np.ndarray, rate: float) -> list[float]:
    """Train the adapter in ``folder`` with AdamW to tell the next token; return the loss of each batch."""
    import torch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = _peft().PeftModel.from_pretrained(pretrained.open_folder(name, base), folder, is_trainable=True)
    trained = [x for x in model.parameters() if x.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=rate, weight_decay=0.01)
    losses = []
    for batch in batches:
        tokens = torch.tensor(batch)
        found = model(tokens[:, :-1])[0]
        loss = torch.nn.functional.cross_entropy(found.flatten(0, 1), tokens[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses
