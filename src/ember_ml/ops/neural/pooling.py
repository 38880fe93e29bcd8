"""Pooling: the largest element or the average of each window over one, two or three spatial dimensions.

Tensors are (batch, ..., channels), with the spatial dimensions in between; ``data_format="channels_first"`` takes and
gives (batch, channels, ...) instead. ``pool_size`` and ``strides`` are one number, or one for each dimension; without
strides the windows lie side by side. ``padding`` is "valid" (only whole windows), "same" (a stride of s gives a size of
n / s, rounded up; where the number of added elements is odd, one more is after than before), or numbers: one for all
sides, or for each dimension one or a pair (before, after), all smaller than the window. What is added never counts: it
is no candidate for the largest element, and no term of the average.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ember_ml import ops
from ember_ml.backend.common.convolution import Sliding, is_channels_first, per_dimension, pooling
from ember_ml.core.dtypes import as_dtype
from ember_ml.dispatch.declare import derived, gradient
from ember_ml.dispatch.dtype_rules import REAL, REAL_FLOATING
from ember_ml.dispatch.half_precision import in_float32, is_half
from ember_ml.typing import Tensor, TensorLike

__all__ = ["adaptive_average_pool", "adaptive_max_pool", "average_pool", "max_pool"]

Combine = Callable[[Tensor, Tensor], Tensor]
Reduce = Callable[..., Tensor]


@derived(REAL)
def max_pool(
    x: TensorLike,
    pool_size: int | Sequence[int],
    strides: int | Sequence[int] | None = None,
    padding: Any = "valid",
    data_format: str = "channels_last",
) -> Tensor:
    """The largest element of each window; NaN where a window holds one.

    >>> from ember_ml import ops
    >>> x = ops.reshape(ops.array([1.0, 5.0, 2.0, 4.0, 3.0]), (1, 5, 1))
    >>> ops.to_numpy(ops.max_pool(x, 2)).ravel().tolist()
    [5.0, 4.0]
    >>> ops.to_numpy(ops.max_pool(x, 2, padding="same")).ravel().tolist()
    [5.0, 4.0, 3.0]
    """
    plan = pooling(x.shape, pool_size, strides, padding, data_format)
    dtype = as_dtype(x.dtype)
    lowest = -math.inf if dtype.kind == "float" else ops.iinfo(dtype).min
    return _slid(x, plan, is_channels_first(data_format, x.ndim), lowest, ops.maximum, ops.max)


def _max_by_x(g: Tensor, x: Tensor, r: Tensor, pool_size: Any, strides: Any, padding: Any, data_format: str) -> Tensor:
    """Return the gradient, which goes to the first of the largest elements of each window."""
    plan, first = pooling(x.shape, pool_size, strides, padding, data_format), is_channels_first(data_format, x.ndim)
    found, rest = ops.zeros_like(x), g
    for elements, results in plan.meetings(x.shape[2:] if first else x.shape[1:-1]):
        own, key = ((slice(None), *cuts) if first else cuts for cuts in (elements, results))
        is_smaller = ops.less(x[own], r[key])  # not where a window holds NaN
        found = ops.index_update(found, own, ops.add(found[own], ops.where(is_smaller, 0.0, rest[key])))
        rest = ops.index_update(rest, key, ops.where(is_smaller, rest[key], 0.0))
    return found


gradient(max_pool, x=_max_by_x)


@derived(REAL_FLOATING)
def average_pool(
    x: TensorLike,
    pool_size: int | Sequence[int],
    strides: int | Sequence[int] | None = None,
    padding: Any = "valid",
    data_format: str = "channels_last",
) -> Tensor:
    """The average of each window; half precision adds up in float32.

    >>> from ember_ml import ops
    >>> x = ops.reshape(ops.array([1.0, 5.0, 2.0, 4.0, 3.0]), (1, 5, 1))
    >>> ops.to_numpy(ops.average_pool(x, 2)).ravel().tolist()
    [3.0, 3.0]
    >>> ops.to_numpy(ops.average_pool(x, 2, padding="same")).ravel().tolist()
    [3.0, 3.0, 3.0]
    """
    if is_half(x):
        return in_float32(average_pool, x, pool_size, strides, padding, data_format)
    plan = pooling(x.shape, pool_size, strides, padding, data_format)
    first = is_channels_first(data_format, x.ndim)
    total = _slid(x, plan, first, 0.0, ops.add, ops.sum)
    if not plan.is_padded:
        return ops.divide(total, float(math.prod(plan.window)))
    one = ops.ones_like(x[:1, :1] if first else x[:1, ..., :1])
    return ops.divide(total, _slid(one, plan, first, 0.0, ops.add, ops.sum))


def _slid(x: Tensor, plan: Sliding, first: bool, filler: float, combine: Combine, reduce: Reduce) -> Tensor:
    """Return the elements of each window taken together, one dimension after the other."""
    if plan.is_padded:
        x = ops.pad(x, plan.pairs(first), constant_values=filler)
    for axis, (window, stride, results) in enumerate(zip(plan.window, plan.strides, plan.results, strict=True), 1):
        along = axis + first
        if window == stride:
            x = _cut(x, along, 0, window * results)
            x = reduce(ops.reshape(x, (*x.shape[:along], results, window, *x.shape[along + 1 :])), axis=along + 1)
        elif window > 1:
            x = _pool_overlapping(x, along, window, stride, results, combine)
        else:
            x = _cut(x, along, 0, results, stride)
    return x


def _pool_overlapping(x: Tensor, axis: int, window: int, stride: int, results: int, combine: Combine) -> Tensor:
    """Windows along one dimension, of parts whose lengths are powers of two: each is two of the one before."""
    whole: Any = None
    first, size = 0, 1
    while True:
        if window & size:
            part = _cut(x, axis, first, results, stride)
            whole = part if whole is None else combine(whole, part)
            first += size
        if 2 * size > window:
            return whole
        rest = x.shape[axis] - size
        x = combine(_cut(x, axis, 0, rest), _cut(x, axis, size, rest))
        size *= 2


def _cut(x: Tensor, axis: int, first: int, count: int, stride: int = 1) -> Tensor:
    """So many elements along one dimension, ``stride`` apart."""
    return x[(slice(None),) * axis + (slice(first, first + (count - 1) * stride + 1, stride),)]


@derived(REAL)
def adaptive_max_pool(x: TensorLike, output_size: int | Sequence[int], data_format: str = "channels_last") -> Tensor:
    """The largest element of each of ``output_size`` windows, which cover each dimension evenly.

    Window i of n over a size s reaches from i * s / n, rounded down, to (i + 1) * s / n, rounded up. More than 2**24
    windows along a dimension raise ``ValueError``.

    >>> from ember_ml import ops
    >>> x = ops.reshape(ops.array([1.0, 5.0, 2.0, 4.0, 3.0]), (1, 5, 1))
    >>> ops.to_numpy(ops.adaptive_max_pool(x, 2)).ravel().tolist()
    [5.0, 4.0]
    """
    return _pool_adaptive(x, output_size, data_format, ops.max)


@derived(REAL_FLOATING)
def adaptive_average_pool(
    x: TensorLike, output_size: int | Sequence[int], data_format: str = "channels_last"
) -> Tensor:
    """The average of each of ``output_size`` windows, which cover each dimension evenly; see adaptive_max_pool.

    >>> from ember_ml import ops
    >>> x = ops.reshape(ops.array([1.0, 5.0, 3.0, 4.0, 5.0]), (1, 5, 1))
    >>> ops.to_numpy(ops.adaptive_average_pool(x, 2)).ravel().tolist()
    [3.0, 4.0]
    """
    if is_half(x):
        return in_float32(adaptive_average_pool, x, output_size, data_format)
    return _pool_adaptive(x, output_size, data_format, ops.mean)


_MOST_WINDOWS = 2**24


def _pool_adaptive(x: Tensor, output_size: int | Sequence[int], data_format: str, reduce: Reduce) -> Tensor:
    first = is_channels_first(data_format, x.ndim)
    counts = per_dimension(output_size, x.ndim - 2, "output_size")
    for axis, count in enumerate(counts, 2 if first else 1):
        size = x.shape[axis]
        if size < 1:
            raise ValueError(f"x has no elements along dimension {axis} to pool")
        if count > _MOST_WINDOWS:  # each is computed by itself
            raise ValueError(f"output_size {count} is too many windows; along a dimension there are at most 2**24")
        if size % count == 0:
            x = reduce(ops.reshape(x, (*x.shape[:axis], count, size // count, *x.shape[axis + 1 :])), axis=axis + 1)
        else:
            ends = [(i * size // count, -(-(i + 1) * size // count)) for i in range(count)]
            x = ops.stack([reduce(_cut(x, axis, start, end - start), axis=axis) for start, end in ends], axis=axis)
    return x
