"""Reshape, reorder and broadcast, on NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from ember_ml.backend.common.axes import check_scalar_axis
from ember_ml.backend.common.shapes import NO_ODD_LENGTH, as_axes, as_shape, broadcast, new_shape, roll_pairs
from ember_ml.backend.contract import ByDType

# NumPy 2.4: reads every negative length as -1
reshape = ByDType(np.ndarray.reshape, general=lambda x, shape: np.reshape(x, new_shape(shape)), when=NO_ODD_LENGTH)
transpose = np.transpose
swapaxes = np.swapaxes
expand_dims = np.expand_dims


def squeeze(x: np.ndarray, axis: Any) -> np.ndarray:
    if x.ndim == 0:
        check_scalar_axis(axis)
    return np.squeeze(x, axis)


def broadcast_to(x: np.ndarray, shape: Any) -> np.ndarray:
    lengths = as_shape(shape)
    if x.ndim == 0 and 0 not in lengths:  # the same as np.broadcast_to, in a tenth of the time
        result = np.ndarray(lengths, x.dtype, x, 0, (0,) * len(lengths))
        result.flags.writeable = False
        return result
    return np.broadcast_to(x, lengths)


def broadcast_arrays(arrays: list[np.ndarray]) -> tuple[np.ndarray, ...]:
    shape = broadcast([x.shape for x in arrays])
    return tuple(np.broadcast_to(x, shape) for x in arrays)


def flip(x: np.ndarray, axis: Any) -> np.ndarray:
    return np.flip(x, None if axis is None else as_axes(axis, x.ndim))


def roll(x: np.ndarray, shift: Any, axis: Any) -> np.ndarray:
    if axis is None:
        return np.roll(x, sum(roll_pairs(shift, 0, 1)[0]))
    return np.roll(x, *roll_pairs(shift, axis, x.ndim))
