"""Check and normalize the axes of reductions, and compute the shapes that are left, for every backend."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

__all__ = ["axes_of", "axis_of", "check_initial", "check_scalar_axis", "count_along", "fold_axes", "reduced_shape"]


def axis_of(axis: Any, ndim: int) -> int:
    """Return ``axis`` counted from the front; ``IndexError`` where the tensor has no such axis."""
    index = operator.index(axis)
    if not -ndim <= index < ndim:
        raise IndexError(f"axis {index} is out of range for a tensor of {ndim} dimensions")
    return index % ndim


def axes_of(axis: Any, ndim: int) -> tuple[int, ...]:
    """Return the axes that ``axis`` (an int, several, or None for all) names; ``ValueError`` for one named twice."""
    if axis is None:
        return tuple(range(ndim))
    if not isinstance(axis, tuple | list):
        return (axis_of(axis, ndim),)
    axes = sorted(axis_of(item, ndim) for item in axis)
    if len(set(axes)) < len(axes):
        raise ValueError(f"axis {tuple(axis)} names a dimension twice")
    return tuple(axes)


def check_scalar_axis(axis: Any) -> None:
    """Raise IndexError for an axis of a 0-d tensor, which has none."""
    # NumPy 2.4: accepts 0 and -1.
    # torch 2.13: accepts 0 and -1.
    axes_of(axis, 0)


def check_initial(initial: Any) -> None:
    """Raise ValueError for a first value of a reduction, a tensor, that is not one number."""
    if initial.ndim:
        raise ValueError(f"initial is one number, not a tensor of shape {tuple(initial.shape)}")


def reduced_shape(shape: Sequence[int], axes: tuple[int, ...], keepdims: bool) -> tuple[int, ...]:
    """Return the shape after a reduction over ``axes``."""
    if keepdims:
        return tuple(1 if i in axes else n for i, n in enumerate(shape))
    return tuple(n for i, n in enumerate(shape) if i not in axes)


def count_along(shape: Sequence[int], axis: Any) -> int:
    """Return how many elements a reduction over ``axis`` takes together."""
    if axis is None:
        return math.prod(shape)
    if isinstance(axis, tuple | list):
        return math.prod([shape[i] for i in axis])
    return shape[axis]


def fold_axes(shape: Sequence[int], axes: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the order of axes that puts ``axes`` last, and the shape in which they are then one axis."""
    kept = tuple(i for i in range(len(shape)) if i not in axes)
    return kept + axes, (*(shape[i] for i in kept), math.prod([shape[i] for i in axes]))
