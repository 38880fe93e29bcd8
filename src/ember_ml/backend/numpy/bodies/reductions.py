"""Reductions, on NumPy."""

# NumPy 2.4: sums pairwise along the contiguous axis only; along any other, one row after the other, which loses digits
# (numpy#29772).
# NumPy 2.4: adds and multiplies half precision in half precision.

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

import numpy as np

from ember_ml.backend.common.axes import axes_of, check_initial, check_scalar_axis, count_along, reduced_shape
from ember_ml.backend.contract import Body, ByDType
from ember_ml.backend.host_arrays import as_float32, cast_host, host_dtypes
from ember_ml.core import dtypes as dt

Array = np.ndarray[Any, Any]

# So many elements are added one after the other: the error stays below 3e-7.
SHORT = 16
_PARTS = 8
_BFLOAT16 = host_dtypes[dt.bfloat16]
_HALVES = (np.dtype(np.float16), _BFLOAT16)
_add: Any = np.add.reduce
_multiply: Any = np.multiply.reduce
_maximum: Any = np.maximum.reduce


def through_float32(native: Body) -> Body:
    """Wrap ``native`` to compute half precision in float32 and cast a float32 result back."""

    def body(x: Array, *args: Any) -> Any:
        result = native(as_float32(x), *args)
        return cast_host(result, x.dtype) if result.dtype == np.float32 else result

    return body


def in_float32(native: Body) -> ByDType:
    """Wrap ``native`` to compute half precision in float32."""
    return ByDType(native, dict.fromkeys(dt.HALVES, through_float32(native)))


def not_in_bfloat16(native: Body) -> ByDType:
    """Wrap ``native``, whose results are exact, to compute bfloat16 in float32."""
    # NumPy 2.4 with ml_dtypes 0.6: sorts NaN to any position, and warns of NaN in max and min
    return ByDType(native, {dt.bfloat16: through_float32(native)})


def accumulating(native: Body) -> ByDType:
    """Wrap ``native(x, axis, dtype, ...)`` to accumulate in float32 at least, or in the requested dtype."""

    def body(x: Array, axis: Any, dtype: np.dtype | None, *rest: Any) -> Array:
        if dtype is not None:
            x = cast_host(x, dtype)
        half = x.dtype in _HALVES
        result = native(as_float32(x) if half else x, axis, None, *rest)
        return cast_host(result, dtype or (x.dtype if half else result.dtype))

    return ByDType(native, dict.fromkeys(dt.HALVES, body), body)


def total(x: Array, axis: Any, keepdims: bool) -> Array:
    """Return the sum; its error in float32 is far below 1e-6 for any number of elements."""
    if x.size <= SHORT or x.dtype.char not in "fF":
        return np.asarray(_add(x, axis, None, None, keepdims))
    axes = axes_of(axis, x.ndim)
    if not axes:
        return x
    first, last = axes[0], axes[-1]
    if x.flags.c_contiguous and last - first < len(axes):  # adjacent in memory: one axis
        result = _total_along(x.reshape(*x.shape[:first], -1, *x.shape[last + 1 :]), first)
    else:
        result = x
        for one in sorted(axes, key=lambda i: abs(x.strides[i])):
            result = _total_along(result, one)
    return result.reshape(reduced_shape(x.shape, axes, keepdims))


def _total_along(x: Array, axis: int) -> Array:
    """Return the sum along one axis, which is kept with length 1."""
    n, step = x.shape[axis], abs(x.strides[axis])
    is_innermost = step and builtins.all(
        abs(other) > step for i, other in enumerate(x.strides) if i != axis and x.shape[i] > 1
    )
    if n <= SHORT or is_innermost:
        return _add(x, axis, None, None, True)
    # whole blocks are added, which is also several times faster than row by row
    length = n // _PARTS
    before = (slice(None),) * axis
    parts = x[(*before, slice(length * _PARTS))].reshape(*x.shape[:axis], _PARTS, length, *x.shape[axis + 1 :])
    result = _total_along(_add(parts, axis), axis)
    rest = x[(*before, slice(length * _PARTS, None))]
    return result + _add(rest, axis, None, None, True) if n % _PARTS else result


def _sum(x: Array, axis: Any, dtype: None, keepdims: bool) -> Array:
    if not x.ndim:
        check_scalar_axis(axis)
    if x.size <= SHORT or (type(axis) is int and x.shape[axis] <= SHORT):
        return np.asarray(_add(x, axis, None, None, keepdims))
    return total(x, axis, keepdims)


def _prod(x: Array, axis: Any, dtype: None, keepdims: bool) -> Array:
    if not x.ndim:
        check_scalar_axis(axis)
    return np.asarray(_multiply(x, axis, None, None, keepdims))


def _mean(x: Array, axis: Any, keepdims: bool) -> Array:
    result = _add(x, axis, None, None, keepdims) if x.size <= SHORT else total(x, axis, keepdims)
    n = x.size if axis is None else count_along(x.shape, axis)
    return np.asarray(result / n) if n else np.full(result.shape, np.nan, x.dtype)


def _var(x: Array, axis: Any, correction: float, keepdims: bool) -> Array:
    with np.errstate(all="ignore"):
        deviation = x - _mean(x, axis, True)
        square = deviation * deviation if x.dtype.kind == "f" else np.real(deviation) ** 2 + np.imag(deviation) ** 2
        freedom = np.asarray(count_along(x.shape, axis) - correction, square.dtype)
        return np.asarray(total(square, axis, keepdims) / np.maximum(freedom, 0))


def _std(x: Array, axis: Any, correction: float, keepdims: bool) -> Array:
    return np.asarray(np.sqrt(_var(x, axis, correction, keepdims)))


def _logsumexp(x: Array, axis: Any, keepdims: bool) -> Array:
    with np.errstate(all="ignore"):
        if not x.size:
            return np.asarray(np.log(total(x, axis, keepdims)))
        top = _maximum(x, axis, None, None, True)
        top = np.where(np.isfinite(top), top, np.zeros((), x.dtype))
        result = np.log(total(np.exp(x - top), axis, True)) + top
    return result.reshape(reduced_shape(x.shape, axes_of(axis, x.ndim), keepdims))


def _reduce_by(reduce: Any) -> Callable[[Array, Any, bool], Array]:
    def body(x: Array, axis: Any, keepdims: bool) -> Array:
        if not x.ndim:
            check_scalar_axis(axis)
        return np.asarray(reduce(x, axis, None, None, keepdims))

    return body


def _extreme(reduce: Any) -> Callable[[Array, Any, bool, Array | None], Array]:
    def body(x: Array, axis: Any, keepdims: bool, initial: Array | None) -> Array:
        if not x.ndim:
            check_scalar_axis(axis)
        if initial is None:
            return np.asarray(reduce(x, axis, None, None, keepdims))
        check_initial(initial)
        return np.asarray(reduce(x, axis, None, None, keepdims, initial.astype(x.dtype)))

    return body


def _argmax(x: Array, axis: int | None, keepdims: bool) -> Array:
    if not x.ndim:
        check_scalar_axis(axis)
    return np.asarray(np.argmax(x, axis, keepdims=keepdims))


def _argmin(x: Array, axis: int | None, keepdims: bool) -> Array:
    if not x.ndim:
        check_scalar_axis(axis)
    return np.asarray(np.argmin(x, axis, keepdims=keepdims))


def count_nonzero(x: Array, axis: Any, keepdims: bool) -> Array:
    if not x.ndim:
        check_scalar_axis(axis)
    return np.asarray(np.count_nonzero(x, axis, keepdims=keepdims))


sum = accumulating(_sum)
prod = accumulating(_prod)
mean = in_float32(_mean)
var = in_float32(_var)
std = in_float32(_std)
logsumexp = in_float32(_logsumexp)
max = not_in_bfloat16(_extreme(_maximum))
min = not_in_bfloat16(_extreme(np.minimum.reduce))
argmax = not_in_bfloat16(_argmax)
argmin = not_in_bfloat16(_argmin)
all = _reduce_by(np.logical_and.reduce)
any = _reduce_by(np.logical_or.reduce)
