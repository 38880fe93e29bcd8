"""Sorting and order statistics, on NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from ember_ml.backend.common.axes import axes_of, axis_of, fold_axes, reduced_shape
from ember_ml.backend.common.quantiles import positions, read_probabilities
from ember_ml.backend.numpy.bodies.reductions import in_float32, not_in_bfloat16

Array = np.ndarray[Any, Any]

_SMALL = 1024  # for fewer elements, making keys costs more than it saves
_KEYED = frozenset(map(np.dtype, (np.float16, np.float32, np.int32, np.uint32)))


def _sort(x: Array, axis: int | None, descending: bool, stable: bool) -> Array:
    if axis is None:
        x, axis = x.reshape(-1), 0
    axis = axis_of(axis, x.ndim or 1)
    if not x.ndim:
        return x
    # equal elements cannot be told apart: the fast sort is as good as a stable one
    result = np.sort(x, axis)
    return np.flip(result, axis) if descending else result


def _ordered_keys(x: Array) -> Array:
    """Return int32 keys in the order of the elements, equal for equal elements, largest for NaN."""
    if x.dtype == np.int32:
        return x
    if x.dtype == np.uint32:
        return (x ^ np.uint32(0x80000000)).view(np.int32)
    x = x.astype(np.float32)
    bits = (x + np.float32(0)).view(np.int32)  # -0.0 + 0 is 0.0
    keys = bits ^ ((bits >> 31) & 0x7FFFFFFF)
    return np.where(np.isnan(x), np.int32(0x7FFFFFFF), keys)


def _argsort(x: Array, axis: int | None, descending: bool, stable: bool) -> Array:
    if axis is None:
        x, axis = x.reshape(-1), 0
    axis = axis_of(axis, x.ndim or 1)
    if not x.ndim:
        return np.zeros((), np.int64)
    n = x.shape[axis]
    if x.size >= _SMALL and x.dtype in _KEYED and n < 2**31:
        # sorting pairs of key and index is twice as fast as NumPy's stable argsort, and as stable
        keys = _ordered_keys(np.moveaxis(x, axis, -1))
        pairs = (~keys if descending else keys).astype(np.int64)
        pairs <<= 32
        pairs |= np.arange(n)
        pairs.sort(-1)
        pairs &= 0xFFFFFFFF
        return np.moveaxis(pairs, -1, axis)
    if descending:  # flip, sort ascending, flip: equal elements keep their order
        return n - 1 - np.flip(np.argsort(np.flip(x, axis), axis, kind="stable"), axis)
    return np.argsort(x, axis, kind="stable" if stable else None)


def _argpartition(x: Array, kth: int, axis: int) -> Array:
    n = x.shape[axis_of(axis, x.ndim)]
    return np.argpartition(x, axis_of(kth, n), axis)


def top_k(x: Array, k: int, axis: int, sorted: bool) -> tuple[Array, Array]:
    axis = axis_of(axis, x.ndim)
    n = x.shape[axis]
    if not 0 <= k <= n:
        raise ValueError(f"there are {n} elements along axis {axis}, of which {k} cannot be taken")
    rows = np.moveaxis(x, axis, -1)
    indices = _first_largest(rows if x.dtype.char in "?bBhHiIlLqQefd" else rows.astype(np.float32), k)
    indices = np.moveaxis(indices, -1, axis)
    return np.take_along_axis(x, indices, axis), indices


def _first_largest(rows: Array, k: int) -> Array:
    n = rows.shape[-1]
    if not k:
        return np.zeros((*rows.shape[:-1], 0), np.int64)
    smallest = np.partition(rows, n - k, axis=-1)[..., n - k, None]
    chosen = ~(rows < smallest)
    tied = rows == smallest
    missing = np.isnan(smallest)
    if missing.any():  # NaN is the largest, and equal to NaN
        is_nan = np.isnan(rows)
        chosen &= ~missing | is_nan
        tied |= missing & is_nan
    if np.count_nonzero(chosen) > k * smallest.size:
        spare = k - np.count_nonzero(chosen & ~tied, axis=-1, keepdims=True)
        chosen &= ~tied | (np.cumsum(tied, axis=-1) <= spare)
    indices = np.nonzero(chosen)[-1].reshape(*rows.shape[:-1], k)
    order = _argsort(np.take_along_axis(rows, indices, -1), -1, True, True)
    return np.take_along_axis(indices, order, -1)


def _quantile(x: Array, q: Any, axis: Any, keepdims: bool, method: str) -> Array:
    outer, probabilities = read_probabilities(q)
    axes = axes_of(axis, x.ndim)
    order, together = fold_axes(x.shape, axes)
    shape = (*outer, *reduced_shape(x.shape, axes, keepdims))
    n = together[-1]
    if not n:
        return np.full(shape, np.nan, x.dtype)
    rows = x.transpose(order).reshape(together)
    below, above, weight = positions(n, probabilities, method)
    if len(below) == 1:
        place = above[0]
        part = np.partition(rows, place, axis=-1)
        high = part[..., place : place + 1]
        low = high if below == above else np.max(part[..., :place], -1, keepdims=True)
        largest = np.max(part[..., place:], -1, keepdims=True)
    else:
        part = np.sort(rows, axis=-1)
        low, high, largest = part[..., below], part[..., above], part[..., -1:]
    weights = np.array(weight, x.dtype)
    with np.errstate(all="ignore"):
        between = low * (1 - weights) + high * weights
    result = np.where(low == high, low, between)  # the mean of equal infinities is NaN
    result = np.where(np.isnan(largest), largest, result)
    return np.moveaxis(result, -1, 0).reshape(shape)


def _median(x: Array, axis: Any, keepdims: bool) -> Array:
    return _quantile(x, 0.5, axis, keepdims, "linear")


sort = not_in_bfloat16(_sort)
argsort = not_in_bfloat16(_argsort)
argpartition = not_in_bfloat16(_argpartition)
quantile = in_float32(_quantile)
median = in_float32(_median)
