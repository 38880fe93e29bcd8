"""Norms, on NumPy: scaled where the powers overflow or vanish."""

from __future__ import annotations

import math

import numpy as np

from ember_ml.backend.common.axes import axes_of, check_scalar_axis
from ember_ml.backend.numpy.bodies import reductions
from ember_ml.backend.numpy.bodies.reductions import in_float32, total
from ember_ml.typing import AxisLike


def _vector_norm(x: np.ndarray, axis: AxisLike | None, keepdims: bool, ord: float) -> np.ndarray:
    if not isinstance(ord, int | float):
        raise ValueError(f"the order of a vector norm is a number, not {ord!r}")
    if x.ndim == 0:
        check_scalar_axis(axis)
    size = np.abs(x)
    if math.isinf(ord):
        extreme = reductions.max if ord > 0 else reductions.min
        return extreme.native(size, axis, keepdims, None)
    if ord == 0:
        return total((size != 0).astype(size.dtype), axis, keepdims)
    if ord == 1:
        return total(size, axis, keepdims)
    with np.errstate(all="ignore"):
        result = _root_of_powers(size, axis, keepdims, ord)
        limits = np.finfo(size.dtype)
        # squares of what is smaller lose digits before they vanish
        if not size.size or ord < 0 or (np.all(result < limits.max) and np.all(result > limits.tiny**0.5 * 1e4)):
            return result
        scale = reductions.max.native(size, axes_of(axis, x.ndim), True, None)
        scale = np.where((scale > 0) & np.isfinite(scale), scale, np.ones((), size.dtype))
        scaled = _root_of_powers(size / scale, axis, keepdims, ord)
        return scaled * scale.reshape(scaled.shape)


def _root_of_powers(size: np.ndarray, axis: AxisLike | None, keepdims: bool, ord: float) -> np.ndarray:
    if ord == 2:
        return np.sqrt(total(np.square(size), axis, keepdims))
    return total(size ** size.dtype.type(ord), axis, keepdims) ** size.dtype.type(1 / ord)


vector_norm = in_float32(_vector_norm)
