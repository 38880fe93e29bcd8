"""Scatter: reduce rows into segments, on MLX."""

from __future__ import annotations

from typing import Any

import mlx.core as mx

from ember_ml.backend.common.scatter import partial_sums, usable_ids
from ember_ml.backend.mlx.bodies.indexing import readable
from ember_ml.backend.mlx.graph_probe import is_vectorizing

_HALVES = (mx.float16, mx.bfloat16)


def _check_ids(data: mx.array, ids: mx.array, count: int | None) -> tuple[mx.array, int]:
    """Return the segment ids, all in range, and the number of segments."""
    # MLX 0.32: writes outside of the array for ids that are out of range (mlx#206)
    return usable_ids(data, ids, count, readable, lambda ids, last: mx.clip(ids.astype(mx.int64), 0, last))


def _has_none(data: mx.array, count: int) -> bool:
    """Whether there is nothing to scatter, or nothing to scatter into."""
    # MLX 0.32: refuses updates of an array without rows
    return data.size == 0 or count == 0


def segment_sum(data: mx.array, segment_ids: mx.array, num_segments: int | None, sorted: bool) -> mx.array:
    ids, count = _check_ids(data, segment_ids, num_segments)
    return _sum_rows(data, ids, count)


def _sum_rows(data: mx.array, ids: mx.array, count: int) -> mx.array:
    shape = (count, *data.shape[1:])
    if _has_none(data, count):
        return mx.zeros(shape, dtype=data.dtype)
    wide = data.astype(mx.float32) if data.dtype in _HALVES else data
    parts = partial_sums(ids.size, count) if mx.issubdtype(wide.dtype, mx.inexact) else 1
    if parts > 1:
        step = -(-ids.size // parts)
        ids = ids.astype(mx.int64) + mx.arange(ids.size) // step * count
    sums = mx.zeros((parts * count, *data.shape[1:]), dtype=wide.dtype).at[ids].add(wide)
    return (sums.reshape(parts, *shape).sum(axis=0) if parts > 1 else sums).astype(data.dtype)


def segment_mean(data: mx.array, segment_ids: mx.array, num_segments: int | None, sorted: bool) -> mx.array:
    ids, count = _check_ids(data, segment_ids, num_segments)
    wide = data.astype(mx.float32) if data.dtype in _HALVES else data
    with_one = mx.maximum(_sizes(ids, count, data.ndim), 1)
    return (_sum_rows(wide, ids, count) / with_one.astype(wide.dtype)).astype(data.dtype)


def segment_max(data: mx.array, segment_ids: mx.array, num_segments: int | None, sorted: bool) -> mx.array:
    return _reduce_segments("maximum", data, segment_ids, num_segments)


def segment_min(data: mx.array, segment_ids: mx.array, num_segments: int | None, sorted: bool) -> mx.array:
    return _reduce_segments("minimum", data, segment_ids, num_segments)


def segment_prod(data: mx.array, segment_ids: mx.array, num_segments: int | None, sorted: bool) -> mx.array:
    if not mx.issubdtype(data.dtype, mx.inexact) or is_vectorizing():  # a rule cannot close over mapped ids
        return _reduce_segments("multiply", data, segment_ids, num_segments)

    # MLX 0.32: no gradient of a scattered product
    @mx.custom_function
    def product(data: mx.array) -> mx.array:
        return _reduce_segments("multiply", data, segment_ids, num_segments)

    @product.vjp
    def _(data: mx.array, cotangent: mx.array, result: mx.array) -> mx.array:
        return _products_of_others(data, segment_ids, result.shape[0]) * cotangent[segment_ids]

    result: Any = product(data)
    return result


def _products_of_others(data: mx.array, segment_ids: mx.array, count: int) -> mx.array:
    """Return for each element the product of the others of its segment, also where some are zero."""
    is_zero = data == 0
    factors = mx.where(is_zero, 1, data)
    zeros = _sum_rows(is_zero.astype(data.dtype), segment_ids, count)[segment_ids]
    rest = segment_prod(factors, segment_ids, count, False)[segment_ids] / factors
    return mx.where(mx.logical_or(zeros == 0, mx.logical_and(is_zero, zeros == 1)), rest, 0)


def _sizes(ids: mx.array, count: int, ndim: int) -> mx.array:
    """Return how many rows each segment has, shaped to broadcast with its rows."""
    sizes = mx.zeros((count,), dtype=mx.int64)
    if count and ids.size:
        sizes = sizes.at[ids].add(1)
    return sizes.reshape(-1, *(1,) * (ndim - 1)) if count else sizes.reshape(0, *(1,) * (ndim - 1))


def _start(reduce: str, dtype: mx.Dtype) -> Any:
    """Return the identity of the reduction."""
    if reduce == "multiply":
        return mx.array(1, dtype=dtype)
    if mx.issubdtype(dtype, mx.floating):
        return mx.array(-mx.inf if reduce == "maximum" else mx.inf, dtype=dtype)
    info = mx.iinfo(dtype)
    if reduce == "minimum" and dtype == mx.uint64:  # MLX 0.32: reads integers as int64
        return mx.bitwise_invert(mx.array(0, dtype=dtype))
    return mx.array(info.min if reduce == "maximum" else info.max, dtype=dtype)


def _reduce_segments(reduce: str, data: mx.array, segment_ids: mx.array, num_segments: int | None) -> mx.array:
    ids, count = _check_ids(data, segment_ids, num_segments)
    shape = (count, *data.shape[1:])
    if _has_none(data, count):
        return mx.zeros(shape, dtype=data.dtype)
    wide = data.astype(mx.float32) if data.dtype in _HALVES else data
    cell = mx.broadcast_to(_start(reduce, wide.dtype), shape).at[ids]
    found = getattr(cell, reduce)(wide)
    zero = mx.array(0, dtype=wide.dtype)
    if reduce == "multiply" or not mx.issubdtype(wide.dtype, mx.floating):
        return mx.where(_sizes(ids, count, data.ndim) == 0, zero, found).astype(data.dtype)
    # MLX 0.32: keeps or drops NaN by the order of the rows; hence a flag for each segment: numbers (1) or NaN (2)
    got = mx.zeros(shape, dtype=mx.uint8).at[ids].maximum(mx.isnan(wide).astype(mx.uint8) + mx.array(1, dtype=mx.uint8))
    found = mx.where(got == 2, mx.array(mx.nan, dtype=wide.dtype), found)
    return mx.where(got == 0, zero, found).astype(data.dtype)


def one_hot(x: mx.array, num_classes: int, axis: int, dtype: mx.Dtype | None) -> mx.array:
    found = x[..., None] == mx.arange(num_classes)
    return mx.moveaxis(found, -1, axis).astype(mx.float32 if dtype is None else dtype)
