"""Scatter: reduce rows into segments, on NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from ember_ml.backend.common.scatter import cells, partial_sums
from ember_ml.backend.host_arrays import host_dtypes
from ember_ml.core import dtypes as dt

_HALVES = (np.dtype(np.float16), host_dtypes[dt.bfloat16])


def segment_sum(data: np.ndarray, segment_ids: np.ndarray, num_segments: int | None, sorted: bool) -> np.ndarray:
    ids, count = _check_ids(data, segment_ids, num_segments)
    return _sum_rows(data, ids, count, sorted)


def _sum_rows(data: np.ndarray, ids: np.ndarray, count: int, is_sorted: bool) -> np.ndarray:
    if data.ndim > 1:
        return _by_rows(np.add, data, ids, count, is_sorted)
    wide = _widen(data)
    parts = partial_sums(len(ids), count) if wide.dtype.kind in "fc" else 1
    sums = np.zeros((parts, count), wide.dtype)
    step = -(-len(ids) // parts)
    for part in range(parts):
        some = slice(part * step, (part + 1) * step)
        np.add.at(sums[part], ids[some], wide[some])
    return (sums[0] if parts == 1 else sums.sum(axis=0)).astype(data.dtype, copy=False)


def segment_max(data: np.ndarray, segment_ids: np.ndarray, num_segments: int | None, sorted: bool) -> np.ndarray:
    return _reduce_segments(np.maximum, data, segment_ids, num_segments, sorted)


def segment_min(data: np.ndarray, segment_ids: np.ndarray, num_segments: int | None, sorted: bool) -> np.ndarray:
    return _reduce_segments(np.minimum, data, segment_ids, num_segments, sorted)


def segment_prod(data: np.ndarray, segment_ids: np.ndarray, num_segments: int | None, sorted: bool) -> np.ndarray:
    return _reduce_segments(np.multiply, data, segment_ids, num_segments, sorted)


def segment_mean(data: np.ndarray, segment_ids: np.ndarray, num_segments: int | None, sorted: bool) -> np.ndarray:
    ids, count = _check_ids(data, segment_ids, num_segments)
    sizes = np.maximum(np.bincount(ids, minlength=count), 1).reshape(-1, *(1,) * (data.ndim - 1))
    wide = _widen(data)
    sums = _sum_rows(wide, ids, count, sorted)
    return (sums / sizes.astype(wide.dtype)).astype(data.dtype, copy=False)


def _check_ids(data: np.ndarray, ids: np.ndarray, count: int | None) -> tuple[np.ndarray, int]:
    """Check the segment ids; return them and the number of segments."""
    low, high = _bounds(ids)
    count, is_inside = cells(data.shape, ids.shape, count, low, high)
    ids = ids.astype(np.int64, copy=False)
    return ids if is_inside else np.clip(ids, 0, count - 1), count


def _bounds(ids: np.ndarray) -> tuple[int, int]:
    """Return the least and the largest id; one pass over them as unsigned integers is enough if none is negative."""
    if ids.size == 0:
        return 0, -1
    if ids.dtype == np.int64 and (high := int(ids.view(np.uint64).max())) < 1 << 63:
        return 0, high
    return int(ids.min()), int(ids.max())


def _widen(data: np.ndarray) -> np.ndarray:
    """Cast half precision to float32, for sums and products."""
    return data.astype(np.float32) if data.dtype in _HALVES else data


def _start(ufunc: np.ufunc, dtype: np.dtype) -> Any:
    """Return the identity of the ufunc."""
    if ufunc is np.multiply:
        return 1
    sign = -1 if ufunc is np.maximum else 1
    if dtype.kind == "f":
        return sign * np.inf
    return np.iinfo(dtype).min if sign < 0 else np.iinfo(dtype).max


def _reduce_segments(
    ufunc: np.ufunc, data: np.ndarray, segment_ids: np.ndarray, num_segments: int | None, is_sorted: bool
) -> np.ndarray:
    ids, count = _check_ids(data, segment_ids, num_segments)
    if data.ndim > 1:
        return _by_rows(ufunc, data, ids, count, is_sorted)
    wide = _widen(data)
    start = _start(ufunc, wide.dtype)
    result = np.full(count, start, wide.dtype)
    ufunc.at(result, ids, wide)
    if (result == start).any():  # only then can a segment be empty; counting takes as long again
        result[np.bincount(ids, minlength=count) == 0] = 0
    return result.astype(data.dtype, copy=False)


def _by_rows(ufunc: np.ufunc, data: np.ndarray, ids: np.ndarray, count: int, is_sorted: bool) -> np.ndarray:
    """Reduce rows into segments, many rows at a time.

    The j-th rows of all segments are taken together, for j up to the square root of the number of rows; the few
    segments with more rows are then finished one by one.
    """
    # NumPy 2.4: ufunc.at takes the rows one by one, and 8 times as long
    result = np.zeros((count, *data.shape[1:]), data.dtype)
    if result.size == 0 or len(ids) == 0:
        return result
    order = np.arange(len(ids)) if is_sorted else np.argsort(_narrow_ids(ids, count), kind="stable")
    sizes = np.bincount(ids, minlength=count)
    largest_first = np.argsort(-sizes, kind="stable")[: np.count_nonzero(sizes)]
    starts = (np.cumsum(sizes) - sizes)[largest_first]
    sizes = sizes[largest_first]
    rounds = int(len(ids) ** 0.5) + 1
    found = _widen(data[order[starts]])
    for number in range(1, min(rounds, int(sizes[0]))):
        have = int(np.searchsorted(-sizes, -number))  # the segments with more than that many rows
        ufunc(found[:have], data[order[starts[:have] + number]], out=found[:have])
    for cell in range(int(np.searchsorted(-sizes, -rounds))):
        rest = data[order[starts[cell] + rounds : starts[cell] + sizes[cell]]]
        ufunc(found[cell], _reduce_rows(ufunc, _widen(rest)), out=found[cell])
    result[largest_first] = found.astype(data.dtype, copy=False)
    return result


def _reduce_rows(ufunc: np.ufunc, rows: np.ndarray) -> np.ndarray:
    if ufunc is not np.add:
        return ufunc.reduce(rows, axis=0, dtype=rows.dtype)
    # NumPy 2.4: adds tall arrays one row after the other; in blocks the errors stay small (numpy#29772)
    side = int(len(rows) ** 0.5)
    blocks = rows[: side * side].reshape(side, side, *rows.shape[1:]).sum(axis=1, dtype=rows.dtype)
    return blocks.sum(axis=0, dtype=rows.dtype) + rows[side * side :].sum(axis=0, dtype=rows.dtype)


def _narrow_ids(ids: np.ndarray, count: int) -> np.ndarray:
    """Cast the ids to 16 bits where they fit: NumPy sorts them ten times as fast."""
    return ids.astype(np.uint16) if count <= 1 << 16 else ids


def one_hot(x: np.ndarray, num_classes: int, axis: int, dtype: np.dtype | None) -> np.ndarray:
    found = x[..., None] == np.arange(num_classes)
    return np.moveaxis(found, -1, axis).astype(np.float32 if dtype is None else dtype)
