"""Batches of samples as NumPy arrays: stacked, or padded to one length."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any

import numpy as np

from ember_ml.backend.host_arrays import as_host, cast_host, host_dtypes
from ember_ml.core.dtypes import find_dtype
from ember_ml.core.promotion import promote

__all__ = ["pad_rows", "stack_rows"]

_dtype_of = attrgetter("dtype")
_shape_of = attrgetter("shape")


def stack_rows(values: list[Any]) -> np.ndarray:
    """Return arrays of one shape, or numbers, as one array with a row for each.

    >>> from ember_ml.backend.host_batches import stack_rows
    >>> stack_rows([[1, 2], [3, 4]]).tolist()
    [[1, 2], [3, 4]]
    """
    first = values[0]
    if type(first) is np.ndarray and first.ndim and len({*map(type, values)}) == 1 and _are_alike(values):
        # np.stack takes twice as long, as_host several times
        return as_host(np.concatenate(values).reshape(len(values), *first.shape))
    return as_host(values)


def _are_alike(arrays: list[np.ndarray]) -> bool:
    return len({*map(_dtype_of, arrays)}) == len({*map(_shape_of, arrays)}) == 1


def pad_rows(values: Sequence[Any], value: float, multiple_of: int) -> np.ndarray:
    """Return arrays whose first axes differ in length as one array with a row for each, filled up with ``value``.

    The common length is that of the longest, rounded up to a multiple of ``multiple_of``.

    >>> from ember_ml.backend.host_batches import pad_rows
    >>> pad_rows([[1, 2, 3], [4]], 0, 2).tolist()
    [[1, 2, 3, 0], [4, 0, 0, 0]]
    """
    rows = [as_host(x) for x in values]
    inner = {x.shape[1:] for x in rows}
    if len(inner) > 1:
        raise ValueError(f"arrays are padded along their first axis; the others must agree: {[x.shape for x in rows]}")
    found = [find_dtype(x.dtype) for x in rows if x.size] or [find_dtype(rows[0].dtype)]  # [] has no dtype of its own
    dtype = host_dtypes[promote([dtype for dtype in found if dtype is not None], set())]
    length = -(-max(map(len, rows)) // multiple_of) * multiple_of
    filling = _filling(value, dtype)
    padded = np.full((len(rows), length, *inner.pop()), filling, dtype)
    for target, x in zip(padded, rows, strict=True):
        target[: len(x)] = x
    return padded


def _filling(value: float, dtype: np.dtype) -> np.ndarray:
    """Return the value in ``dtype``; raise where an integer or a bool would become another number."""
    found = cast_host(np.asarray(value), dtype)
    if dtype.kind in "biu" and found != value:
        raise ValueError(
            f"{value} is no number of {dtype}, with which sequences of it could be filled up; give Pad a value for "
            "each key, or another dtype to the sequences"
        )
    return found
