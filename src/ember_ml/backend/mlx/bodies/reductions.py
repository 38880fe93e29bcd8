"""Reductions, on MLX."""

# MLX 0.32: adds one element after the other, which loses digits (mlx#488).
# MLX 0.32: sums integers in 32 bits, with wrapping; returns uint32 indices. Older versions accumulate half precision in
# half precision.

from __future__ import annotations

import math
from typing import Any

import mlx.core as mx

from ember_ml.backend.common.axes import axes_of, check_initial, count_along, reduced_shape
from ember_ml.backend.contract import Body, ByDType
from ember_ml.backend.mlx.empty_reductions import all_along, any_along, product_along, sum_along
from ember_ml.backend.mlx.host_transfer import cast
from ember_ml.core import dtypes as dt

# So many elements are added one after the other: the error stays below 3e-7.
SHORT = 16
_PARTS = 8
_HALVES = (mx.float16, mx.bfloat16)
_NARROW = (dt.INTEGERS | dt.BOOL) - {dt.int64, dt.uint64}
_INEXACT = (mx.float32, mx.complex64)


def through_float32(native: Body) -> Body:
    """Wrap ``native`` to compute half precision in float32 and cast a float32 result back."""

    def body(x: mx.array, *args: Any) -> Any:
        result = native(x.astype(mx.float32), *args)
        return result.astype(x.dtype) if result.dtype == mx.float32 else result

    return body


def in_float32(native: Body) -> ByDType:
    """Wrap ``native`` to compute half precision in float32."""
    return ByDType(native, dict.fromkeys(dt.HALVES, through_float32(native)))


def accumulating(native: Body) -> ByDType:
    """Wrap ``native(x, axis, dtype, ...)`` to accumulate in float32 or 64 bits, or in the requested dtype."""

    def body(x: mx.array, axis: Any, dtype: mx.Dtype | None, *rest: Any) -> mx.array:
        if dtype is not None:
            x = cast(x, dtype)
        if x.dtype in _HALVES:
            result = native(x.astype(mx.float32), axis, None, *rest).astype(x.dtype)
        elif mx.issubdtype(x.dtype, mx.inexact):
            result = native(x, axis, None, *rest)
        else:
            wide = mx.uint64 if mx.issubdtype(x.dtype, mx.unsignedinteger) else mx.int64
            result = native(x.astype(wide), axis, None, *rest)
        return result if dtype is None else cast(result, dtype)

    return ByDType(native, dict.fromkeys(dt.HALVES | _NARROW, body), body)


def total(x: mx.array, axis: Any, keepdims: bool) -> mx.array:
    """Return the sum; its error in float32 is far below 1e-6 for any number of elements."""
    if x.size <= SHORT or x.dtype not in _INEXACT:
        return sum_along(x, axis, keepdims)
    axes = axes_of(axis, x.ndim)
    if not axes:
        return x
    first, last = axes[0], axes[-1]
    if last - first < len(axes):
        result = _total_along(mx.flatten(x, first, last), first)
    else:
        result = x
        for one in reversed(axes):
            result = _total_along(result, one)
    return mx.reshape(result, reduced_shape(x.shape, axes, keepdims))


def _total_along(x: mx.array, axis: int) -> mx.array:
    """Return the sum along one axis, which is kept with length 1."""
    n = x.shape[axis]
    if n <= SHORT:
        return sum_along(x, axis, True)
    # whole blocks are added, which is also several times faster than row by row
    length = n // _PARTS
    if n % _PARTS:
        x, rest = mx.split(x, [length * _PARTS], axis)
        return _total_along(x, axis) + sum_along(rest, axis, True)
    return _total_along(sum_along(mx.unflatten(x, axis, (_PARTS, length)), axis), axis)


def _sum(x: mx.array, axis: Any, dtype: None, keepdims: bool) -> mx.array:
    if x.size <= SHORT:
        return sum_along(x, axis, keepdims)
    return total(x, axis, keepdims)


def _prod(x: mx.array, axis: Any, dtype: None, keepdims: bool) -> mx.array:
    return product_along(x, axis, keepdims)


def _mean(x: mx.array, axis: Any, keepdims: bool) -> mx.array:
    if x.size <= SHORT:
        return mx.mean(x, axis, keepdims) if x.size else sum_along(x, axis, keepdims) / 0
    return total(x, axis, keepdims) / count_along(x.shape, axis)


def _var(x: mx.array, axis: Any, correction: float, keepdims: bool) -> mx.array:
    deviation = x - _mean(x, axis, True)
    if x.dtype == mx.complex64:
        square = mx.square(mx.real(deviation)) + mx.square(mx.imag(deviation))
    else:
        square = mx.square(deviation)
    freedom = count_along(x.shape, axis) - correction
    return total(square, axis, keepdims) / (freedom if freedom > 0 else 0)


def _std(x: mx.array, axis: Any, correction: float, keepdims: bool) -> mx.array:
    variance = _var(x, axis, correction, keepdims)
    is_zero = variance == 0  # there the gradient of the root is infinite
    return mx.where(is_zero, 0, mx.sqrt(mx.where(is_zero, 1, variance)))


def log_sum_exp(x: mx.array, axis: Any, keepdims: bool) -> mx.array:
    if not x.size:
        return mx.log(sum_along(x, axis, keepdims))
    top = mx.max(x, axis, True)
    top = mx.stop_gradient(mx.where(mx.isfinite(top), top, mx.zeros_like(top)))
    shifted = x - top
    # MLX 0.32: exp computes float64 in float32 (mlx#3047), expm1 does not
    powers = mx.expm1(shifted) + 1 if x.dtype == mx.float64 else mx.exp(shifted)
    whole = total(powers, axis, True)
    is_zero = whole == 0  # there the gradient of the logarithm is infinite
    result = mx.where(is_zero, -math.inf, mx.log(mx.where(is_zero, 1, whole)) + top)
    return mx.reshape(result, reduced_shape(x.shape, axes_of(axis, x.ndim), keepdims))


def _extreme(native: Body, join: Body) -> Body:
    def body(x: mx.array, axis: Any, keepdims: bool, initial: mx.array | None) -> mx.array:
        if initial is not None:
            check_initial(initial)
        if x.size:
            found = native(x, axis, keepdims)
            return found if initial is None else _join_initial(found, initial, join)
        axes = axes_of(axis, x.ndim)
        if initial is not None:
            return mx.broadcast_to(initial, reduced_shape(x.shape, axes, keepdims))
        if axes and not count_along(x.shape, axes):
            raise ValueError("there are no elements to take the largest or smallest of")
        return mx.zeros(reduced_shape(x.shape, axes, keepdims), dtype=x.dtype)

    return body


def _join_initial(found: mx.array, initial: mx.array, join: Body) -> mx.array:
    result = join(found, initial)
    if not mx.issubdtype(found.dtype, mx.floating):
        return result
    # MLX 0.32: the gradient of equals goes to one of them
    gap = mx.where(mx.isfinite(found), initial - found, mx.zeros_like(found))
    return mx.where(found == initial, found + 0.5 * gap, result)


def _index(native: Body) -> Body:
    def body(x: mx.array, axis: int | None, keepdims: bool) -> mx.array:
        x = mx.stop_gradient(x)
        if axis is None:  # MLX 0.32: fails for 0-d with keepdims
            result = native(x).astype(mx.int64)
            return mx.reshape(result, (1,) * x.ndim) if keepdims else result
        if not x.size and x.shape[axis]:  # MLX 0.32: refuses to reduce no rows
            return mx.zeros(reduced_shape(x.shape, axes_of(axis, x.ndim), keepdims), dtype=mx.int64)
        return native(x, axis, keepdims).astype(mx.int64)

    return body


def count_nonzero(x: mx.array, axis: Any, keepdims: bool) -> mx.array:
    return sum_along((x != 0).astype(mx.int64), axis, keepdims)


sum = accumulating(_sum)
prod = accumulating(_prod)
mean = in_float32(_mean)
var = in_float32(_var)
std = in_float32(_std)
logsumexp = in_float32(log_sum_exp)
argmax = _index(mx.argmax)
argmin = _index(mx.argmin)
max = _extreme(mx.max, mx.maximum)
min = _extreme(mx.min, mx.minimum)
all = all_along
any = any_along
