"""Neural networks and the portable tensors that they compute with."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ember_ml.nn import modules, tensor

if TYPE_CHECKING:
    from ember_ml.nn import blocks, features, initializers, layers
    from ember_ml.nn.gradients import value_and_grad
    from ember_ml.nn.layers.channel_mixing import *
    from ember_ml.nn.layers.sequence_mixing import *
    from ember_ml.nn.model import Model
    from ember_ml.nn.modules.activations import *
    from ember_ml.nn.modules.module import Module
    from ember_ml.nn.modules.parameter import Buffer, Parameter
    from ember_ml.nn.modules.sequential import Sequential

_LAZY = {
    "Buffer": "modules.parameter",
    "Model": "model",
    "Module": "modules.module",
    "Parameter": "modules.parameter",
    "Sequential": "modules.sequential",
    "blocks": "",
    "features": "",
    "initializers": "",
    "layers": "",
    "value_and_grad": "gradients",
}
"""Names that not every program needs, and the modules that have them; importing the package does not load them."""
_LAYERS = ("layers.channel_mixing", "layers.sequence_mixing", "modules.activations")


def __getattr__(name: str) -> Any:
    where = _LAZY.get(name)
    if where == "":
        return import_module(f"{__name__}.{name}")
    if where is not None:
        return getattr(import_module(f"{__name__}.{where}"), name)
    if not name.startswith("_"):
        for where in _LAYERS:  # every layer and activation is also a name of this package
            module = import_module(f"{__name__}.{where}")
            if name in module.__all__:
                return getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
