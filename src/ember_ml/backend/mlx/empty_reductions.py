"""Reduce arrays that may be empty, on MLX."""

# MLX 0.32: summing an empty array that another function returned may never end, since its strides are not set. Arrays
# without elements are never passed to MLX; the result is known.

from __future__ import annotations

from typing import Any

import mlx.core as mx

from ember_ml.backend.common.axes import axes_of, reduced_shape

__all__ = ["all_along", "any_along", "product_along", "sum_along"]


def _fill_empty(x: mx.array, axis: Any, keepdims: bool, value: Any, dtype: mx.Dtype) -> mx.array:
    return mx.full(reduced_shape(x.shape, axes_of(axis, x.ndim), keepdims), value, dtype)


def sum_along(x: mx.array, axis: Any = None, keepdims: bool = False) -> mx.array:
    return mx.sum(x, axis, keepdims) if x.size else _fill_empty(x, axis, keepdims, 0, x.dtype)


def product_along(x: mx.array, axis: Any = None, keepdims: bool = False) -> mx.array:
    return mx.prod(x, axis, keepdims) if x.size else _fill_empty(x, axis, keepdims, 1, x.dtype)


def all_along(x: mx.array, axis: Any = None, keepdims: bool = False) -> mx.array:
    return mx.all(x, axis, keepdims) if x.size else _fill_empty(x, axis, keepdims, True, mx.bool_)


def any_along(x: mx.array, axis: Any = None, keepdims: bool = False) -> mx.array:
    return mx.any(x, axis, keepdims) if x.size else _fill_empty(x, axis, keepdims, False, mx.bool_)
