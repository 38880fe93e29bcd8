"""Other shapes and orders of the same elements, on NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from ember_ml.backend.shapes import as_axes, as_shape, broadcast, roll_pairs

reshape = np.ndarray.reshape
transpose = np.transpose
swapaxes = np.swapaxes
expand_dims = np.expand_dims
squeeze = np.squeeze


def broadcast_to(x: np.ndarray, shape: Any) -> np.ndarray:
    return np.broadcast_to(x, as_shape(shape))


def broadcast_arrays(arrays: list[np.ndarray]) -> tuple[np.ndarray, ...]:
    shape = broadcast([x.shape for x in arrays])
    return tuple(np.broadcast_to(x, shape) for x in arrays)


def flip(x: np.ndarray, axis: Any) -> np.ndarray:
    return np.flip(x, None if axis is None else as_axes(axis, x.ndim))


def roll(x: np.ndarray, shift: Any, axis: Any) -> np.ndarray:
    return np.roll(x, shift) if axis is None else np.roll(x, *roll_pairs(shift, axis, x.ndim))
