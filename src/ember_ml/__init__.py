"""Ember ML: machine-learning code that is independent of the library which computes it.

``ops`` holds the operations, ``nn.tensor`` the portable tensors, ``set_backend`` chooses who computes.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ember_ml import backend, errors, memory, nn, ops
from ember_ml.backend import (
    auto_select_backend,
    get_backend,
    get_backend_module,
    set_backend,
    use_backend,
)
from ember_ml.backend.value_checks import set_value_checks, value_checks
from ember_ml.core import dtypes
from ember_ml.interop import einops as einops_support
from ember_ml.ops import (
    checkpoint,
    compile,
    custom_gradient,
    grad,
    hessian,
    jacobian,
    jvp,
    stop_gradient,
    value_and_grad,
    vjp,
    vmap,
)
from ember_ml.tensor import EmberDType, EmberTensor

__all__ = [
    "EmberDType",
    "EmberTensor",
    "auto_select_backend",
    "backend",
    "checkpoint",
    "compile",
    "custom_gradient",
    "dtypes",
    "einops_support",
    "errors",
    "get_backend",
    "get_backend_module",
    "grad",
    "hessian",
    "jacobian",
    "jvp",
    "memory",
    "nn",
    "ops",
    "set_backend",
    "set_value_checks",
    "stop_gradient",
    "use_backend",
    "value_and_grad",
    "value_checks",
    "vjp",
    "vmap",
]


_LAZY = {
    "datasets": "datasets",
    "distributed": "distributed",
    "features": "features",
    "registry": "config.registry",
    "training": "training",
}
"""Parts that not every program needs; importing the package does not load them."""


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return import_module(f"ember_ml.{_LAZY[name]}")
    if name == "__version__":
        from importlib.metadata import version  # slow to import, and rarely asked for

        return version("ember-ml")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
