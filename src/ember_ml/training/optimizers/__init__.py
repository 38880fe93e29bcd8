"""Optimizers: how gradients change parameters, the same on every backend."""

from __future__ import annotations

from ember_ml.config import registry
from ember_ml.training.optimizers.adaptive import Adagrad, Adam, AdamW, RMSprop
from ember_ml.training.optimizers.base import Optimizer, clip_by_norm, global_norm
from ember_ml.training.optimizers.groups import layer_wise_groups
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
    "layer_wise_groups",
]


def get(optimizer: str | Optimizer) -> Optimizer:
    """Return the optimizer of that name with its own settings, or the optimizer itself.

    Names are those of the classes in small letters, and what is registered as ``optimizers/<name>``.

    >>> from ember_ml.training import optimizers
    >>> optimizers.get("sgd").learning_rate
    0.01
    """
    if isinstance(optimizer, Optimizer):
        return optimizer
    if isinstance(optimizer, type) and issubclass(optimizer, Optimizer):
        raise TypeError(f"{optimizer.__name__} is a class of optimizers: make an object of it, {optimizer.__name__}()")
    known = [name.removeprefix("optimizers/") for name in registry.names("optimizers/")]
    if isinstance(optimizer, str):
        for name in (optimizer, optimizer.lower()):
            if name in known:
                return registry.get("optimizers", name)
    raise ValueError(f"there is no optimizer {optimizer!r}; there are {', '.join(known)}")


for _name in __all__:
    _thing = globals()[_name]
    if isinstance(_thing, type) and _thing is not Optimizer:
        registry.register(f"optimizers/{_name.lower()}")(_thing)
