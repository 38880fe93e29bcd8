"""Sorting and order statistics, on MLX."""

# MLX 0.32: sorts in ascending order only, and returns uint32 indices

from __future__ import annotations

from typing import Any

import mlx.core as mx

from ember_ml.backend.common.axes import axes_of, axis_of, fold_axes, reduced_shape
from ember_ml.backend.common.quantiles import positions, read_probabilities
from ember_ml.backend.mlx.bodies.reductions import in_float32
from ember_ml.backend.mlx.vmap_rules import bitwise_and, bitwise_or, bitwise_xor, left_shift, mappable, right_shift

_SMALL = 1024  # for fewer elements, making keys costs more than it saves
_KEYED = (mx.float16, mx.bfloat16, mx.float32, mx.int8, mx.int16, mx.int32, mx.uint8, mx.uint16, mx.uint32, mx.bool_)


def _flip(x: mx.array, axis: int) -> mx.array:
    return x[(slice(None),) * axis + (slice(None, None, -1),)]


def sort(x: mx.array, axis: int | None, descending: bool, stable: bool) -> mx.array:
    if axis is None:
        x, axis = mx.reshape(x, (-1,)), 0
    axis = axis_of(axis, x.ndim or 1)
    if not x.ndim or not x.size:
        return x
    if x.size >= _SMALL and mx.issubdtype(x.dtype, mx.floating) and x.dtype in _KEYED:
        # a third faster: MLX compares integers faster than floats, which may be NaN
        return mx.take_along_axis(x, argsort(x, axis, descending, stable), axis)
    result = mx.sort(x, axis)
    return _flip(result, axis) if descending else result


def _ordered_keys(x: mx.array) -> mx.array:
    """Return int64 keys between -2**31 and 2**31 in the order of the elements, equal for equals, largest for NaN."""
    if not mx.issubdtype(x.dtype, mx.floating):
        keys = x.astype(mx.int64)
        return keys - 2**31 if x.dtype == mx.uint32 else keys
    x = x.astype(mx.float32)
    bits = (x + 0.0).view(mx.int32)  # -0.0 + 0 is 0.0
    keys = bitwise_xor(bits, bitwise_and(right_shift(bits, 31), 0x7FFFFFFF))
    return mx.where(mx.isnan(x), 0x7FFFFFFF, keys).astype(mx.int64)


def _pairs(rows: mx.array, descending: bool) -> mx.array:
    """Pack key and index into one int64: no two are equal, and in ascending order equal elements keep their order."""
    keys = _ordered_keys(rows)
    pairs = left_shift(mx.bitwise_invert(keys) if descending else keys, 32)
    return bitwise_or(pairs, mx.arange(rows.shape[-1], dtype=mx.int64))


def argsort(x: mx.array, axis: int | None, descending: bool, stable: bool) -> mx.array:
    if axis is None:
        x, axis = mx.reshape(x, (-1,)), 0
    axis = axis_of(axis, x.ndim or 1)
    if not x.ndim or not x.size:
        return mx.zeros(x.shape, dtype=mx.int64)
    x = mx.stop_gradient(x)
    if x.size >= _SMALL and x.dtype in _KEYED:  # twice as fast, as in sort
        pairs = mx.sort(_pairs(mx.moveaxis(x, axis, -1), descending), -1)
        return mx.moveaxis(bitwise_and(pairs, 0xFFFFFFFF), -1, axis)
    if descending:  # flip, sort ascending, flip: equal elements keep their order
        return x.shape[axis] - 1 - _flip(mx.argsort(_flip(x, axis), axis), axis).astype(mx.int64)
    return mx.argsort(x, axis).astype(mx.int64)


def argpartition(x: mx.array, kth: int, axis: int) -> mx.array:
    axis = axis_of(axis, x.ndim)
    return mx.argpartition(mx.stop_gradient(x), axis_of(kth, x.shape[axis]), axis).astype(mx.int64)


def top_k(x: mx.array, k: int, axis: int, sorted: bool) -> tuple[mx.array, mx.array]:
    axis = axis_of(axis, x.ndim)
    n = x.shape[axis]
    if not 0 <= k <= n:
        raise ValueError(f"there are {n} elements along axis {axis}, of which {k} cannot be taken")
    rows = mx.moveaxis(x, axis, -1)
    if k and k < n and x.dtype in _KEYED:
        pairs = mx.sort(mx.partition(_pairs(mx.stop_gradient(rows), True), k - 1, -1)[..., :k], -1)
        indices = bitwise_and(pairs, 0xFFFFFFFF)
    else:
        indices = argsort(rows, -1, True, True)[..., :k]
    indices = mx.moveaxis(indices, -1, axis)
    return mx.take_along_axis(x, indices, axis), indices


def _quantile(x: mx.array, q: Any, axis: Any, keepdims: bool, method: str) -> mx.array:
    outer, probabilities = read_probabilities(q)
    axes = axes_of(axis, x.ndim)
    order, together = fold_axes(x.shape, axes)
    shape = (*outer, *reduced_shape(x.shape, axes, keepdims))
    n = together[-1]
    if not n:
        return mx.full(shape, mx.nan, dtype=x.dtype)
    rows = mx.reshape(mx.transpose(x, order), together)
    below, above, weight = positions(n, probabilities, method)
    if len(below) == 1:
        place = above[0]
        part = mx.partition(rows, place, -1)
        high = part[..., place : place + 1]
        low = high if below == above else mx.max(part[..., :place], -1, keepdims=True)
        largest = mx.max(part[..., place:], -1, keepdims=True)
    else:
        part = mx.sort(rows, -1)
        low, high = mappable(mx.take(part, mx.array(below), -1)), mappable(mx.take(part, mx.array(above), -1))
        largest = part[..., -1:]
    weights = mx.array(weight, dtype=x.dtype)
    between = low * (1 - weights) + high * weights
    result = mx.where(low == high, low, between)  # the mean of equal infinities is NaN
    result = mx.where(mx.isnan(largest), largest, result)
    return mx.reshape(mx.moveaxis(result, -1, 0), shape)


def _median(x: mx.array, axis: Any, keepdims: bool) -> mx.array:
    return _quantile(x, 0.5, axis, keepdims, "linear")


quantile = in_float32(_quantile)
median = in_float32(_median)
