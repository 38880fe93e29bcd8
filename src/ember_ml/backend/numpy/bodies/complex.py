"""Real and imaginary parts, signs and bits of floats, on NumPy."""

from __future__ import annotations

import numpy as np

conj = np.conj
signbit = np.signbit
copysign = np.copysign
nextafter = np.nextafter


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


def ldexp(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    # NumPy 2.4: the exponent is a C int; beyond 5000 every float is 0 or infinite
    exponent = np.clip(y, -5000 if y.dtype.kind == "i" else 0, 5000) if y.dtype.itemsize > 1 else y
    wide = x.astype(np.float32) if x.dtype.itemsize < 4 else x
    return np.ldexp(wide, exponent.astype(np.int32)).astype(x.dtype)
