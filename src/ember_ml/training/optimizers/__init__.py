"""Optimizers: how gradients change parameters, the same on every backend."""

from __future__ import annotations

from ember_ml.config.registry import register
from ember_ml.training.optimizers.adaptive import Adagrad, Adam, AdamW, RMSprop
from ember_ml.training.optimizers.base import Optimizer, clip_by_norm, global_norm
from ember_ml.training.optimizers.matrix_wise import Adafactor, Muon
from ember_ml.training.optimizers.momentum import SGD, Lion

__all__ = [
    "SGD",
    "Adafactor",
    "Adagrad",
    "Adam",
    "AdamW",
    "Lion",
    "Muon",
    "Optimizer",
    "RMSprop",
    "clip_by_norm",
    "get",
    "global_norm",
]

_NAMED = {cls.__name__.lower(): cls for cls in (SGD, Adafactor, Adagrad, Adam, AdamW, Lion, Muon, RMSprop)}
for _name, _cls in _NAMED.items():
    register(f"optimizers/{_name}")(_cls)


def get(optimizer: str | Optimizer) -> Optimizer:
    """The optimizer of that name with its own settings, or the optimizer itself.

    >>> from ember_ml.training import optimizers
    >>> optimizers.get("sgd").learning_rate
    0.01
    """
    if isinstance(optimizer, Optimizer):
        return optimizer
    if not isinstance(optimizer, str) or optimizer.lower() not in _NAMED:
        raise ValueError(f"there is no optimizer {optimizer!r}; there are {', '.join(_NAMED)}")
    return _NAMED[optimizer.lower()]()
