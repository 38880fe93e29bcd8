"""Joining, splitting, repeating and padding, on NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from ember_ml.backend.common.axes import axis_of
from ember_ml.backend.common.padding import margins, pad_indices, repeat_indices
from ember_ml.backend.common.shapes import as_shape, pad_pairs, sections

concatenate = np.concatenate
stack = np.stack


def unstack(x: np.ndarray, axis: int) -> tuple[np.ndarray, ...]:
    return tuple(np.moveaxis(x, axis_of(axis, x.ndim), 0)[i, ...] for i in range(x.shape[axis]))


def split(x: np.ndarray, indices_or_sections: Any, axis: int) -> list[np.ndarray]:
    return _parts(x, indices_or_sections, axis, True)


def array_split(x: np.ndarray, indices_or_sections: Any, axis: int) -> list[np.ndarray]:
    return _parts(x, indices_or_sections, axis, False)


def _parts(x: np.ndarray, parts: Any, axis: int, equal: bool) -> list[np.ndarray]:
    front = (slice(None),) * axis_of(axis, x.ndim)
    return [x[(*front, part)] for part in sections(parts, x.shape[axis], equal)]


def tile(x: np.ndarray, reps: Any) -> np.ndarray:
    return np.tile(x, as_shape(reps))


def repeat(x: np.ndarray, repeats: Any, axis: int | None) -> np.ndarray:
    if axis is None:
        x, axis = x.reshape(-1), 0
    if type(repeats) is int and repeats >= 0:
        return np.repeat(x, repeats, axis_of(axis, x.ndim))
    return np.take(x, repeat_indices(x.shape[axis_of(axis, x.ndim)], repeats), axis)


def pad(x: np.ndarray, pad_width: Any, mode: str, constant_values: np.ndarray | None) -> np.ndarray:
    pairs = pad_pairs(pad_width, x.ndim)
    if mode == "constant":
        result = np.zeros([before + n + after for n, (before, after) in zip(x.shape, pairs, strict=True)], x.dtype)
        if constant_values is not None:
            result[...] = constant_values
        result[tuple(slice(before, before + n) for n, (before, _) in zip(x.shape, pairs, strict=True))] = x
        return result
    for axis, (before, after) in enumerate(pairs):
        x = _extend_axis(x, axis, before, after, mode)
    return x


def _extend_axis(x: np.ndarray, axis: int, before: int, after: int, mode: str) -> np.ndarray:
    ends = margins(x.shape[axis], before, after, mode)
    if not (before or after):
        return x
    if ends is None:
        return np.take(x, pad_indices(x.shape[axis], before, after, mode), axis)
    front = (slice(None),) * axis
    first, last = (x[(*front, end)] if mode == "wrap" else np.flip(x[(*front, end)], axis) for end in ends)
    return np.concatenate((first, x, last), axis)
