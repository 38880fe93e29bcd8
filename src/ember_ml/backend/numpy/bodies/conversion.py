"""Conversion between dtypes, on NumPy."""

from __future__ import annotations

import numpy as np

copy = np.ndarray.copy


def view(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    return (x if x.dtype.itemsize == dtype.itemsize else np.ascontiguousarray(x).reshape(x.shape)).view(dtype)


def stop_gradient(x: np.ndarray) -> np.ndarray:
    return x
