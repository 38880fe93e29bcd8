"""Matrices made of tensors, on NumPy."""

from __future__ import annotations

import numpy as np


def tril(x: np.ndarray, k: int) -> np.ndarray:
    return np.tril(_matrices(x), k)


def triu(x: np.ndarray, k: int) -> np.ndarray:
    return np.triu(_matrices(x), k)


def _matrices(x: np.ndarray) -> np.ndarray:
    if x.ndim < 2:  # NumPy 2.4: makes a matrix of a vector
        raise ValueError("a triangle needs at least two dimensions")
    return x


diag = np.diag
