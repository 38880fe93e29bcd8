"""A step of a language model on a GPU, beside the one written by hand on PyTorch.

12 layers, width 1024, 16 heads, length 1024, batch 16, vocabulary 32000, bfloat16, fused AdamW; eager and compiled;
interleaved in one run.

    python benchmarks/gpu_transformer.py [--steps 30] [--layers 12] [--device cuda]
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable
from typing import Any

import hand_torch
import torch
from torch.nn import functional as F

import ember_ml
from ember_ml import nn, ops
from ember_ml.training import Trainer, optimizers

RATE, DECAY = 3e-4, 0.01


def by_hand(
    options: argparse.Namespace, tokens: torch.Tensor, target: torch.Tensor, compiled: bool
) -> Callable[[], Any]:
    """Return the step as an expert writes it."""
    model: Any = hand_torch.Transformer(
        options.vocabulary, options.length, options.width, options.layers, options.heads
    )
    model = model.to(options.device, torch.bfloat16)
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=DECAY, fused=True)

    def loss_of(tokens: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(model(tokens).flatten(0, 1).float(), target.flatten())

    run_loss = torch.compile(loss_of) if compiled else loss_of

    def step() -> torch.Tensor:
        loss = run_loss(tokens, target)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def ours(options: argparse.Namespace, tokens: torch.Tensor, target: torch.Tensor, compiled: bool) -> Callable[[], Any]:
    """Return the same step by our trainer."""
    ops.random.seed(0)
    model = nn.blocks.LanguageModel(
        options.vocabulary, options.width, options.layers, options.heads, length=options.length, tied=False
    ).to_dtype("bfloat16")
    optimizer = optimizers.AdamW(RATE, weight_decay=DECAY)
    step = Trainer(model, optimizer, "sparse_categorical_crossentropy", compile=compiled)._step
    step.objective.gives_predictions = False
    return lambda: step((tokens, target))[0]


def milliseconds(step: Callable[[], Any]) -> float:
    """Return the time of one step on the device's own clock, from an idle device."""
    torch.cuda.synchronize()
    start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for _ in range(3):
        step()
    stop.record()
    torch.cuda.synchronize()
    return start.elapsed_time(stop) / 3


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=12)
    for name, value in (("layers", 12), ("width", 1024), ("heads", 16), ("length", 1024), ("batch", 16)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--vocabulary", type=int, default=32000)
    parser.add_argument("--device", default="cuda")
    options = parser.parse_args()
    ember_ml.set_backend("torch")
    ops.set_default_device(options.device)
    shape = (options.batch, options.length + 1)
    text = torch.randint(0, options.vocabulary, shape, device=options.device)
    tokens, target = text[:, :-1].contiguous(), text[:, 1:].contiguous()
    for compiled in (False, True):
        steps = {"ember": ours(options, tokens, target, compiled), "hand": by_hand(options, tokens, target, compiled)}
        for step in steps.values():
            losses = [step() for _ in range(3)]
            print(float(losses[-1]), flush=True)
        found: dict[str, list[float]] = {name: [] for name in steps}
        for _ in range(options.steps):
            for name, step in steps.items():
                found[name].append(milliseconds(step))
        ember, hand = (min(found[name]) for name in ("ember", "hand"))
        middle = statistics.median(found["ember"]) / statistics.median(found["hand"])
        mode = "compiled" if compiled else "eager"
        print(
            f"{mode:9} ember {ember:.2f} ms, by hand {hand:.2f} ms, ratio {ember / hand:.3f}, of medians {middle:.3f}",
            flush=True,
        )
        del steps
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
