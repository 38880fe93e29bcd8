"""Creation of tensors, on MLX."""

from __future__ import annotations

from typing import Any

import mlx.core as mx

from ember_ml.backend.common.ranges import host_arange, integer_arange
from ember_ml.backend.common.shapes import as_shape, grid
from ember_ml.backend.mlx.host_transfer import check_device, from_host
from ember_ml.core.dtypes import find_dtype

_EXACT = 2**53  # MLX 0.32: reads the bounds of a range as doubles


def zeros(shape: Any, dtype: mx.Dtype | None, device: str) -> mx.array:
    check_device(device)
    return mx.zeros(as_shape(shape), mx.float32 if dtype is None else dtype)


def ones(shape: Any, dtype: mx.Dtype | None, device: str) -> mx.array:
    check_device(device)
    return mx.ones(as_shape(shape), mx.float32 if dtype is None else dtype)


empty = zeros  # MLX has no uninitialized arrays


def eye(n_rows: Any, n_cols: Any, k: int, dtype: mx.Dtype | None, device: str) -> mx.array:
    check_device(device)
    rows, columns = shape = as_shape((n_rows, n_rows if n_cols is None else n_cols))
    if 0 in shape or not -rows < k < columns:  # MLX 0.32: k must fit 32 bits
        return zeros(shape, dtype, device)
    return mx.eye(rows, columns, k, mx.float32 if dtype is None else dtype)


def arange(start: Any, stop: Any, step: Any, dtype: mx.Dtype | None, device: str) -> mx.array:
    check_device(device)
    integers = integer_arange(start, stop, step, find_dtype(dtype))
    if integers is not None and max(abs(integers.start), abs(integers.stop), abs(integers.step)) < _EXACT:
        return mx.arange(integers.start, integers.stop, integers.step, dtype=mx.int64 if dtype is None else dtype)
    return from_host(host_arange(start, stop, step, find_dtype(dtype)), device)


def meshgrid(arrays: list[mx.array], indexing: str) -> tuple[mx.array, ...]:
    return tuple(mx.broadcast_to(x.reshape(own), shape) for x, own, shape in grid(arrays, indexing))
