"""Signs, neighbours and exponents of floats on NumPy."""

from __future__ import annotations

import numpy as np

signbit = np.signbit
copysign = np.copysign
nextafter = np.nextafter


def ldexp(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    # NumPy 2.4: the exponent is a C int; beyond 5000 every float is 0 or infinite
    exponent = np.clip(y, -5000 if y.dtype.kind == "i" else 0, 5000) if y.dtype.itemsize > 1 else y
    wide = x.astype(np.float32) if x.dtype.itemsize < 4 else x
    return np.ldexp(wide, exponent.astype(np.int32)).astype(x.dtype)
