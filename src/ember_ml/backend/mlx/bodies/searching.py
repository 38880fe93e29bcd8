"""Distinct values, positions in sorted data, and counts, on MLX."""

from __future__ import annotations

import mlx.core as mx

from ember_ml.backend.common.unique import descends, unique_ops, unique_parts
from ember_ml.backend.mlx.bodies.indexing import in_range, readable
from ember_ml.backend.mlx.bodies.scatter import segment_sum
from ember_ml.backend.mlx.empty_reductions import sum_along
from ember_ml.backend.mlx.graph_probe import is_vectorizing
from ember_ml.backend.mlx.host_transfer import from_host


def _unique(x: mx.array, index: bool, inverse: bool, counts: bool) -> list[mx.array]:
    """Evaluate ``x`` and let NumPy find the distinct values: the shape of the result depends on them."""
    values = readable(x)
    if values is None:
        raise ValueError("the number of distinct values must be known, but these are traced")
    return [from_host(part, None) for part in unique_parts(values, index, inverse, counts)]


unique_values, unique_all, unique_counts, unique_inverse = unique_ops(_unique)


def searchsorted(x: mx.array, y: mx.array, side: str, sorter: mx.array | None) -> mx.array:
    if side not in ("left", "right"):
        raise ValueError(f"side is 'left' or 'right', not {side!r}")
    if x.ndim != 1:
        raise ValueError(f"x must have one dimension, not the shape {x.shape}")
    if sorter is not None:
        x = mx.take(x, in_range(sorter, x.size))
    if is_vectorizing():  # MLX 0.32: vmap of the values alone
        sorted_x, values = mx.broadcast_arrays(x, y[..., None])
        found = _precedes(sorted_x, values) if side == "left" else mx.logical_not(_precedes(values, sorted_x))
        return sum_along(found.astype(mx.int64), -1)
    return mx.searchsorted(x, y, side=side).astype(mx.int64)


def _precedes(x: mx.array, y: mx.array) -> mx.array:
    """Where elements of ``x`` come before those of ``y`` in sorted order, in which NaN is last."""
    if not mx.issubdtype(x.dtype, mx.inexact):
        return x < y
    return mx.logical_or(x < y, mx.logical_and(mx.isnan(y), mx.logical_not(mx.isnan(x))))


def digitize(x: mx.array, bins: mx.array, right: bool) -> mx.array:
    side = "left" if right else "right"
    values = readable(bins)
    if values is not None and descends(values):
        return bins.size - searchsorted(bins[::-1], x, side, None)
    return searchsorted(bins, x, side, None)  # traced: the order of bins cannot be read


def bincount(x: mx.array, weights: mx.array | None, minlength: int) -> mx.array:
    values = readable(x)
    if values is None:
        raise ValueError("the largest integer must be known, but these are traced; ops.segment_sum takes their number")
    if values.ndim != 1:
        raise ValueError(f"x must have one dimension, not the shape {x.shape}")
    if values.size and values.min() < 0:
        raise ValueError("bincount counts no negative integers")
    each = mx.ones(x.shape, dtype=mx.int64) if weights is None else weights
    return segment_sum(each, x, max(int(values.max()) + 1 if values.size else 0, minlength), False)
