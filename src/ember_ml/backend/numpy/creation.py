"""Making tensors, on NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from ember_ml.backend.shapes import as_shape
from ember_ml.backend.spacing import host_arange
from ember_ml.dtypes import find_dtype


def zeros(shape: Any, dtype: np.dtype | None, device: str) -> np.ndarray:
    return np.zeros(as_shape(shape), np.float32 if dtype is None else dtype)


def ones(shape: Any, dtype: np.dtype | None, device: str) -> np.ndarray:
    return np.ones(as_shape(shape), np.float32 if dtype is None else dtype)


def arange(start: Any, stop: Any, step: Any, dtype: np.dtype | None, device: str) -> np.ndarray:
    return host_arange(start, stop, step, find_dtype(dtype))
