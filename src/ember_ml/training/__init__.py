"""Training: losses, optimizers, schedules, metrics, data loaders, and the trainer that puts them together."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ember_ml.training import data, losses, metrics, optimizers, schedules
    from ember_ml.training.data import DataLoader

_LAZY = {
    "DataLoader": "data",
    "Trainer": "trainer",
    "callbacks": "",
    "checkpoints": "",
    "data": "",
    "losses": "",
    "metrics": "",
    "optimizers": "",
    "schedules": "",
    "trainer": "",
}
"""Names, and the modules that have them; importing the package does not load them."""


def __getattr__(name: str) -> Any:
    where = _LAZY.get(name)
    if where is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if where:
        return getattr(import_module(f"{__name__}.{where}"), name)
    return import_module(f"{__name__}.{name}")
