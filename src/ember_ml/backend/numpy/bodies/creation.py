"""Creation of tensors, on NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from ember_ml.backend.common.ranges import host_arange
from ember_ml.backend.common.shapes import as_shape, grid
from ember_ml.core.dtypes import find_dtype


def zeros(shape: Any, dtype: np.dtype | None, device: str) -> np.ndarray:
    return np.zeros(as_shape(shape), np.float32 if dtype is None else dtype)


def ones(shape: Any, dtype: np.dtype | None, device: str) -> np.ndarray:
    return np.ones(as_shape(shape), np.float32 if dtype is None else dtype)


def empty(shape: Any, dtype: np.dtype | None, device: str) -> np.ndarray:
    return np.empty(as_shape(shape), np.float32 if dtype is None else dtype)


def eye(n_rows: Any, n_cols: Any, k: int, dtype: np.dtype | None, device: str) -> np.ndarray:
    rows, columns = as_shape((n_rows, n_rows if n_cols is None else n_cols))
    return np.eye(rows, columns, k, np.float32 if dtype is None else dtype)


def arange(start: Any, stop: Any, step: Any, dtype: np.dtype | None, device: str) -> np.ndarray:
    return host_arange(start, stop, step, find_dtype(dtype))


def meshgrid(arrays: list[np.ndarray], indexing: str) -> tuple[np.ndarray, ...]:
    return tuple(np.broadcast_to(x.reshape(own), shape) for x, own, shape in grid(arrays, indexing))
