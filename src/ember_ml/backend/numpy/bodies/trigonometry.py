"""Circular and hyperbolic functions on NumPy."""

from __future__ import annotations

import numpy as np

from ember_ml.backend.common import special as formulas
from ember_ml.backend.contract import ByDType
from ember_ml.backend.numpy.bodies.complex import of_parts
from ember_ml.core import dtypes as dt

sin = np.sin
cos = np.cos
tan = np.tan
arcsin = np.arcsin
arccos = np.arccos
arctan = np.arctan
arctan2 = np.arctan2
sinh = np.sinh
cosh = np.cosh
arcsinh = np.arcsinh
arccosh = np.arccosh
arctanh = np.arctanh
hypot = np.hypot
deg2rad = np.deg2rad
rad2deg = np.rad2deg


def _complex_tanh(x: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        return formulas.complex_tanh(np, of_parts, x)


# NumPy 2.4: at infinities the imaginary zero has the sign of sin(2b); in the standard, that of b
tanh = ByDType(np.tanh, dict.fromkeys(dt.COMPLEX, _complex_tanh))


def sinc(x: np.ndarray) -> np.ndarray:
    wide = x if x.dtype.itemsize >= 4 else x.astype(np.float32)
    with np.errstate(invalid="ignore"):
        return formulas.sinc(np, np.sin, wide).astype(x.dtype)
