"""Distinct values, positions in sorted data, and counts, on NumPy."""

from __future__ import annotations

import numpy as np

from ember_ml.backend.common.shapes import as_shape
from ember_ml.backend.common.unique import descends, unique_ops, unique_parts
from ember_ml.backend.host_arrays import host_dtypes
from ember_ml.backend.numpy.bodies.indexing import in_range
from ember_ml.backend.numpy.bodies.scatter import segment_sum
from ember_ml.core.dtypes import bfloat16

unique_values, unique_all, unique_counts, unique_inverse = unique_ops(unique_parts)


def searchsorted(x: np.ndarray, y: np.ndarray, side: str, sorter: np.ndarray | None) -> np.ndarray:
    if sorter is not None:
        x = np.take(x, in_range(sorter, x.size))
    if x.dtype == host_dtypes[bfloat16]:  # NumPy 2.4: does not order the NaN of bfloat16
        x, y = x.astype(np.float32), y.astype(np.float32)
    return np.asarray(np.searchsorted(x, y, side=side)).astype(np.int64, copy=False)  # type: ignore[call-overload]


def digitize(x: np.ndarray, bins: np.ndarray, right: bool) -> np.ndarray:
    side = "left" if right else "right"
    if descends(bins):
        return len(bins) - searchsorted(bins[::-1], x, side, None)
    return searchsorted(bins, x, side, None)


def bincount(x: np.ndarray, weights: np.ndarray | None, minlength: int) -> np.ndarray:
    if weights is None:
        if x.size and x.dtype.itemsize == 8:  # NumPy 2.4: writes before the result if the largest is 2**63 - 1
            as_shape(max(int(x.max()), 0))
        return np.bincount(x.astype(np.int64, copy=False), minlength=minlength)
    if x.size and x.min() < 0:
        raise ValueError("bincount counts no negative integers")
    return segment_sum(weights, x, max(int(x.max()) + 1 if x.size else 0, minlength), False)
