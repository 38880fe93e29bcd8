"""Joining, splitting, repeating and padding, on MLX."""

from __future__ import annotations

from typing import Any

import mlx.core as mx

from ember_ml.backend.common.axes import axis_of
from ember_ml.backend.common.padding import margins, pad_indices, repeat_indices
from ember_ml.backend.common.shapes import as_shape, pad_pairs, sections
from ember_ml.backend.contract import ByDType
from ember_ml.backend.mlx.gradients import is_differentiating, ruled
from ember_ml.backend.mlx.vmap_rules import mappable


def _concatenate(x: list[mx.array], axis: int | None) -> mx.array:
    if axis is not None and x:
        axis_of(axis, x[0].ndim)  # MLX 0.32: checks no axis of a single array
    return mx.concatenate(x, axis)


concatenate = ByDType(mx.concatenate, general=_concatenate, when="type(x) in (list, tuple) and len(x) > 1")
stack = mx.stack


def unstack(x: mx.array, axis: int) -> tuple[mx.array, ...]:
    place = axis_of(axis, x.ndim)
    front = (slice(None),) * place

    def parts_of(x: mx.array) -> list[mx.array]:
        return [x[(*front, i)] for i in range(x.shape[place])]

    if not x.shape[place] or not is_differentiating():
        return tuple(parts_of(x))
    # MLX 0.32: adds up the gradients of n parts as n whole arrays, which takes time with the square of n
    return tuple(ruled(parts_of, lambda leaves, gradients, outputs: [mx.stack(gradients, place)], [x]))


def split(x: mx.array, indices_or_sections: Any, axis: int) -> list[mx.array]:
    return _parts(x, indices_or_sections, axis, True)


def array_split(x: mx.array, indices_or_sections: Any, axis: int) -> list[mx.array]:
    return _parts(x, indices_or_sections, axis, False)


def _parts(x: mx.array, parts: Any, axis: int, equal: bool) -> list[mx.array]:
    axis = axis_of(axis, x.ndim)
    front = (slice(None),) * axis
    found = []
    for part in sections(parts, x.shape[axis], equal):
        count = len(range(*part.indices(x.shape[axis])))
        if x.size and count:
            found.append(x[(*front, part)])
        else:  # MLX 0.32: forgets under vmap where the mapped axis of an empty part is
            found.append(mx.zeros((*x.shape[:axis], count, *x.shape[axis + 1 :]), x.dtype))
    return found


def tile(x: mx.array, reps: Any) -> mx.array:
    return mx.tile(x, as_shape(reps))


def repeat(x: mx.array, repeats: Any, axis: int | None) -> mx.array:
    if axis is None:
        x, axis = mx.flatten(x), 0
    if type(repeats) is int:
        return mx.repeat(x, repeats, axis_of(axis, x.ndim))
    return mappable(mx.take(x, mx.array(repeat_indices(x.shape[axis_of(axis, x.ndim)], repeats)), axis=axis))


def pad(x: mx.array, pad_width: Any, mode: str, constant_values: mx.array | None) -> mx.array:
    pairs = pad_pairs(pad_width, x.ndim)
    if mode == "constant":
        result = mx.pad(x, pairs, "constant", mx.zeros((), x.dtype))
        if constant_values is None:
            return result
        # MLX 0.32: the gradient of mx.pad with respect to the constant has a wrong shape
        is_padding = mx.pad(mx.zeros(x.shape, mx.bool_), pairs, "constant", mx.array(True))
        return mx.where(is_padding, constant_values, result)
    for axis, (before, after) in enumerate(pairs):
        x = _extend_axis(x, axis, before, after, mode)
    return x


def _extend_axis(x: mx.array, axis: int, before: int, after: int, mode: str) -> mx.array:
    ends = margins(x.shape[axis], before, after, mode)
    if not (before or after):
        return x
    if ends is None:
        return mappable(mx.take(x, mx.array(pad_indices(x.shape[axis], before, after, mode)), axis=axis))
    front = (slice(None),) * axis
    parts = [x[(*front, end)] for end in ends]
    first, last = parts if mode == "wrap" else (part[(*front, slice(None, None, -1))] for part in parts)
    return mx.concatenate([first, x, last], axis)
