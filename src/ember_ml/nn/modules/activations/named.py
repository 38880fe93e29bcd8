"""Activations by their names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ember_ml import ops
from ember_ml.ops.neural import activations

__all__ = ["get", "name_of"]


def get(activation: str | Callable[[Any], Any] | None) -> Callable[[Any], Any]:
    """The activation of that name, or the function itself; of None, one that changes nothing.

    >>> from ember_ml import ops
    >>> from ember_ml.nn.modules.activations import named
    >>> named.get("relu") is ops.relu
    True
    """
    if activation is None:
        return ops.convert_to_tensor
    if callable(activation):
        return activation
    known = [*activations.__all__, "tanh"]
    if activation not in known:
        raise ValueError(f"there is no activation {activation!r}; there are {', '.join(sorted(known))}")
    return getattr(ops, activation)


def name_of(activation: Callable[[Any], Any]) -> str:
    """What a description calls an activation: the name of a function, or of an object's class."""
    return getattr(activation, "__name__", type(activation).__name__)
