"""Neural networks and the portable tensors that they compute with."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ember_ml.nn import modules, tensor

__all__ = ["modules", "tensor"]

_LAZY = {"blocks": "blocks", "features": "features", "initializers": "initializers", "layers": "layers"}
"""Names that not every program needs, and the modules that have them; importing the package does not load them."""


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module(f"{__name__}.{_LAZY[name]}")
    return module if _LAZY[name] == name else getattr(module, name)
