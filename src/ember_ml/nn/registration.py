"""Register layers, blocks and activations by the names that configurations use."""

from __future__ import annotations

import re
from types import ModuleType

from ember_ml import ops
from ember_ml.config.registry import register, register_function
from ember_ml.nn import blocks
from ember_ml.nn.layers import augmentation, channel_mixing, sequence_mixing, specialized
from ember_ml.nn.modules import activations
from ember_ml.nn.modules.sequential import Sequential


def to_snake_case(name: str) -> str:
    """Return the name of a class in snake case: ``layer_norm`` for ``LayerNorm``, ``mlp`` for ``MLP``."""
    # these are one word each, in spite of their capitals
    name = re.sub("P?ReLU|SiLU|SwiGLU", lambda word: word[0].capitalize(), name)
    return re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def _register_all(folder: str, module: ModuleType) -> None:
    for name in module.__all__:
        thing = getattr(module, name)
        if isinstance(thing, type):
            register(f"{folder}/{to_snake_case(name)}")(thing)


_register_all("layers", augmentation)
_register_all("layers", channel_mixing)
_register_all("layers", sequence_mixing)
_register_all("layers", specialized)
_register_all("blocks", blocks)
_register_all("activations", activations)
register("layers/sequential")(Sequential)
for _name in activations.__all__:
    if getattr(ops, _name, None) is getattr(activations, _name):
        register_function(f"ops/{_name}", getattr(ops, _name))
