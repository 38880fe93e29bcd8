"""Exponentials, logarithms and roots on NumPy."""

from __future__ import annotations

import numpy as np

from ember_ml.backend.common import special as formulas
from ember_ml.backend.contract import ByDType
from ember_ml.backend.numpy.bodies.complex import of_parts
from ember_ml.core import dtypes as dt

exp = np.exp
exp2 = np.exp2
log = np.log
log1p = np.log1p
log2 = np.log2
logaddexp = np.logaddexp
logaddexp2 = np.logaddexp2
sqrt = np.sqrt
cbrt = np.cbrt


# float32 powers of ten from 1e-37 on, and their logarithms
_TENS = np.array([float(f"1e{place}") for place in range(-37, 39)], np.float32)


def _log10_float32(x: np.ndarray) -> np.ndarray:
    # NumPy 2.4: some powers of ten in float32 have a logarithm that is not whole
    result = np.log10(x)
    with np.errstate(invalid="ignore"):
        whole = np.clip(np.rint(result), -37, 38)
    ten = _TENS[np.nan_to_num(whole).astype(np.intp) + 37]
    return np.where(x == ten, whole, result)


log10 = ByDType(np.log10, {dt.float32: _log10_float32})


def _complex_expm1(x: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        return formulas.complex_expm1(np, of_parts, np.exp, x)


# NumPy 2.4: NaN at infinities where the standard has values
expm1 = ByDType(np.expm1, dict.fromkeys(dt.COMPLEX, _complex_expm1))


def rsqrt(x: np.ndarray) -> np.ndarray:
    root = np.sqrt(x)
    return 1 / root if root.dtype.kind == "c" else np.reciprocal(root)  # NumPy 2.4: complex reciprocal of 0 is NaN
