"""Compute the shapes in which the parameters of normalizations broadcast, for every backend."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ember_ml.backend.common.axes import axis_of

__all__ = ["channel_axis", "spread_shape"]


def spread_shape(parameter: Any, name: str, shape: Sequence[int], axes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape in which a parameter with one element per index along ``axes`` broadcasts with a tensor."""
    lengths = tuple(shape[i] for i in axes)
    if tuple(parameter.shape) != lengths:
        raise ValueError(f"{name} has the shape {tuple(parameter.shape)}; along axis {axes} the tensor has {lengths}")
    return tuple(n if i in axes else 1 for i, n in enumerate(shape))


def channel_axis(shape: Sequence[int], groups: int, axis: int) -> int:
    """Return the channel axis, counted from the front; ``ValueError`` where the groups do not divide the channels."""
    place = axis_of(axis, len(shape))
    if place == 0:
        raise ValueError("the first axis is that of the samples, so that it cannot be that of the channels")
    if groups < 1 or shape[place] % groups:
        raise ValueError(f"{shape[place]} channels do not form {groups} groups of equal size")
    return place
