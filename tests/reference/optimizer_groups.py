"""PyTorch's own optimizers with a group for each parameter, as the reference of parameter groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

__all__ = ["train"]

KINDS = {"sgd": "SGD", "adam": "Adam", "adamw": "AdamW", "rmsprop": "RMSprop", "adagrad": "Adagrad"}


def train(
    kind: str,
    parameters: Mapping[str, list[float]],
    gradients: Sequence[Mapping[str, list[float]]],
    settings: Mapping[str, Mapping[str, Any]],
    max_norm: float | None,
) -> dict[str, list[float]]:
    """Return the parameters after a step for each of ``gradients``; parameters without settings are frozen."""
    torch = pytest.importorskip("torch")
    if not settings:
        return dict(parameters)
    held = {name: torch.nn.Parameter(torch.tensor(x, dtype=torch.float64)) for name, x in parameters.items()}
    groups = [{"params": [held[name]], **values} for name, values in settings.items()]
    optimizer = getattr(torch.optim, KINDS[kind])(groups)
    for step in gradients:
        for name in settings:
            held[name].grad = torch.tensor(step[name], dtype=torch.float64)
        if max_norm is not None:
            torch.nn.utils.clip_grad_norm_([held[name] for name in settings], max_norm)
        optimizer.step()
    return {name: x.detach().tolist() for name, x in held.items()}
