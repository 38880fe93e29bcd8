"""Comparison, logic and choice on NumPy."""

from __future__ import annotations

import numpy as np

from ember_ml.backend.contract import ByDType
from ember_ml.core import dtypes as dt

equal = np.equal
not_equal = np.not_equal
less = np.less
less_equal = np.less_equal
greater = np.greater
greater_equal = np.greater_equal
isfinite = np.isfinite
isinf = np.isinf
isnan = np.isnan
logical_and = np.logical_and
logical_or = np.logical_or
logical_xor = np.logical_xor
logical_not = np.logical_not
where = np.where


def isneginf(x: np.ndarray) -> np.ndarray:
    return np.equal(x, -np.inf)


def isposinf(x: np.ndarray) -> np.ndarray:
    return np.equal(x, np.inf)


def isreal(x: np.ndarray) -> np.ndarray:
    return np.equal(np.imag(x), 0) if x.dtype.kind == "c" else np.ones(x.shape, dtype=bool)


def _wide(x: np.ndarray) -> np.ndarray:
    """Cast half precision to float32, integers and bools to float64."""
    if x.dtype.kind in "biu":
        return x.astype(np.float64)
    return x.astype(np.float32) if x.dtype.itemsize == 2 else x


def isclose(x: np.ndarray, y: np.ndarray, rtol: float, atol: float, equal_nan: bool) -> np.ndarray:
    x, y = _wide(x), _wide(y)
    with np.errstate(invalid="ignore", over="ignore"):
        close = (np.abs(x - y) <= atol + rtol * np.abs(y)) & np.isfinite(y) | (x == y)
    return close | (np.isnan(x) & np.isnan(y)) if equal_nan else close


def allclose(x: np.ndarray, y: np.ndarray, rtol: float, atol: float, equal_nan: bool) -> np.ndarray:
    return np.asarray(np.all(isclose(x, y, rtol, atol, equal_nan)))


def _isin(x: np.ndarray, test_elements: np.ndarray, invert: bool) -> np.ndarray:
    return np.isin(x, test_elements, invert=invert)


def _isin_of_bfloat16(x: np.ndarray, test_elements: np.ndarray, invert: bool) -> np.ndarray:
    # NumPy 2.4 with ml_dtypes 0.6: sorts NaN to any position
    return _isin(x.astype(np.float32), test_elements.astype(np.float32), invert)


isin = ByDType(_isin, {dt.bfloat16: _isin_of_bfloat16})
