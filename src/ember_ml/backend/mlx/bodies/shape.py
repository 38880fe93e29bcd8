"""Reshape, reorder and broadcast, on MLX."""

from __future__ import annotations

from typing import Any

import mlx.core as mx

from ember_ml.backend.common.shapes import NO_ODD_LENGTH, as_axes, as_shape, broadcast, new_shape, roll_pairs
from ember_ml.backend.contract import ByDType

transpose = mx.transpose
swapaxes = mx.swapaxes


def _expand_dims(x: mx.array, axis: Any) -> mx.array:
    # MLX 0.32: forgets under vmap where the mapped axis is, for several new axes at once
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    for one in sorted(as_axes(axes, x.ndim + len(axes))):
        x = mx.expand_dims(x, one)
    return x


expand_dims = ByDType(mx.expand_dims, general=_expand_dims, when="type(axis) is int")
squeeze = mx.squeeze


# MLX 0.32: accepts two negative lengths and returns a broken array
reshape = ByDType(mx.reshape, general=lambda x, shape: mx.reshape(x, new_shape(shape)), when=NO_ODD_LENGTH)


def broadcast_to(x: mx.array, shape: Any) -> mx.array:
    return mx.broadcast_to(x, as_shape(shape))


def broadcast_arrays(arrays: list[mx.array]) -> tuple[mx.array, ...]:
    shape = broadcast([x.shape for x in arrays])
    return tuple(mx.broadcast_to(x, shape) for x in arrays)


def flip(x: mx.array, axis: Any) -> mx.array:
    return mx.flip(x, None if axis is None else as_axes(axis, x.ndim))


def roll(x: mx.array, shift: Any, axis: Any) -> mx.array:
    if not x.size:
        return x
    if axis is None:
        return mx.roll(mx.flatten(x), sum(roll_pairs(shift, 0, 1)[0]) % x.size).reshape(x.shape)
    shifts, axes = roll_pairs(shift, axis, x.ndim)
    places: Any = axes  # MLX 0.32: takes several, but its stub says otherwise
    return mx.roll(x, _wrap_shifts(shifts, [x.shape[one] for one in axes]), places) if axes else x


def _wrap_shifts(shifts: Any, lengths: Any) -> Any:
    # MLX 0.32: reads shifts as 32-bit integers
    return tuple(shift % length for shift, length in zip(shifts, lengths, strict=True))
