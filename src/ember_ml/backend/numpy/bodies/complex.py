"""Real and imaginary parts on NumPy."""

from __future__ import annotations

import numpy as np

conj = np.conj


def of_parts(real: np.ndarray, imag: np.ndarray) -> np.ndarray:
    """Join real and imaginary parts; ``real + 1j*imag`` would turn infinities into NaN."""
    real = np.asarray(real)
    result = np.empty(np.broadcast_shapes(real.shape, np.shape(imag)), dtype=f"complex{real.dtype.itemsize * 16}")
    result.real, result.imag = real, imag
    return result


def real(x: np.ndarray) -> np.ndarray:
    return np.real(x).copy() if x.dtype.kind == "c" else np.positive(x)


def imag(x: np.ndarray) -> np.ndarray:
    return np.imag(x).copy() if x.dtype.kind == "c" else np.zeros_like(x)


def polar(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    y = np.asarray(y, x.dtype)  # NumPy 2.4: cos of a Python float is float64
    return of_parts(x * np.cos(y), x * np.sin(y))
