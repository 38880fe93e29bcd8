"""Normalizations on NumPy: in place, with BLAS summing the squares where they are contiguous."""

from __future__ import annotations

from typing import Any

import numpy as np

from ember_ml.backend.common.axes import axes_of, count_along, reduced_shape
from ember_ml.backend.common.normalization import spread_shape
from ember_ml.backend.contract import Body, ByDType
from ember_ml.backend.host_arrays import as_float32, cast_host
from ember_ml.backend.numpy.bodies.reductions import total
from ember_ml.core import dtypes as dt

Array = np.ndarray[Any, Any]


def _in_float32(native: Body) -> ByDType:
    """Wrap a body of several tensors to compute half precision in float32."""

    def body(x: Array, *args: Any) -> Array:
        wide = (as_float32(y) if isinstance(y, np.ndarray) else y for y in args)
        return cast_host(native(as_float32(x), *wide), x.dtype)

    return ByDType(native, dict.fromkeys(dt.HALVES, body))


_MOST_TERMS = 1 << 13
"""Squares of a row that BLAS adds up: on some processors it adds them nearly one after the other."""


def _mean_square(x: Array, axes: tuple[int, ...]) -> Array:
    """Return the mean of the squares over ``axes``, which are kept with length 1."""
    count = count_along(x.shape, axes)
    if axes == tuple(range(x.ndim - len(axes), x.ndim)) and x.flags.c_contiguous and 0 < count <= _MOST_TERMS:
        rows = x.reshape(-1, count)
        squares = np.vecdot(rows, rows).reshape(reduced_shape(x.shape, axes, True))
    else:
        squares = total(x * x, axes, True)
    return squares / np.asarray(count, x.dtype)


def _divide_in_place(x: Array, axes: tuple[int, ...], epsilon: float) -> None:
    mean_square = _mean_square(x, axes)
    mean_square += x.dtype.type(epsilon)
    x /= np.sqrt(mean_square)


def _broadcast_parameter(parameter: Array, name: str, x: Array, axes: tuple[int, ...]) -> Array:
    return parameter.reshape(spread_shape(parameter, name, x.shape, axes))


def _layer_normalization(x: Array, gamma: Array | None, beta: Array | None, axis: Any, epsilon: float) -> Array:
    axes = axes_of(axis, x.ndim)
    with np.errstate(all="ignore"):
        result = x - total(x, axes, True) / np.asarray(count_along(x.shape, axes), x.dtype)
        _divide_in_place(result, axes, epsilon)
        if gamma is not None:
            result *= _broadcast_parameter(gamma, "gamma", x, axes)
        if beta is not None:
            result += _broadcast_parameter(beta, "beta", x, axes)
    return result


def _rms_normalization(x: Array, scale: Array | None, axis: Any, epsilon: float) -> Array:
    axes = axes_of(axis, x.ndim)
    result = x.copy()
    with np.errstate(all="ignore"):
        _divide_in_place(result, axes, epsilon)
        if scale is not None:
            result *= _broadcast_parameter(scale, "scale", x, axes)
    return result


layer_normalization = _in_float32(_layer_normalization)
rms_normalization = _in_float32(_rms_normalization)
