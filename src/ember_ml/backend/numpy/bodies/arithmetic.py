"""Arithmetic on NumPy: ufuncs, and bodies where they deviate from the contract."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from ember_ml.backend import value_checks as checks
from ember_ml.backend.contract import ByDType
from ember_ml.core import dtypes as dt

add = np.add
subtract = np.subtract
multiply = np.multiply
divide = np.divide
mod = np.remainder
fmod = np.fmod
square = np.square
reciprocal = np.reciprocal
negative = np.negative
positive = np.positive
abs = np.abs
sign = np.sign
maximum = np.maximum
minimum = np.minimum
fmax = np.fmax
fmin = np.fmin
heaviside = np.heaviside
ceil = np.ceil
floor = np.floor
trunc = np.trunc
gcd = np.gcd
lcm = np.lcm


def _floor_divide(x: Any, y: Any) -> Any:
    with np.errstate(invalid="ignore"):  # NumPy 2.4: warns of infinities that the standard divides
        result = np.floor_divide(x, y)
    return np.where(np.isinf(x) | np.isinf(y), np.divide(x, y), result)


# NumPy 2.4: NaN for an infinite numerator, -1 for a finite one over an infinity of the other sign (numpy#23860)
floor_divide = ByDType(np.floor_divide, dict.fromkeys(dt.FLOATS, _floor_divide))


def _integer_power(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    if not checks.enabled:  # otherwise NumPy refuses negative powers
        return np.where(y < 0, x.dtype.type(0), np.power(x, np.maximum(y, 0)))
    return np.power(x, y)


power = ByDType(np.power, dict.fromkeys(dt.SIGNED, _integer_power))


def clip(x: np.ndarray, min: np.ndarray | None, max: np.ndarray | None) -> np.ndarray:
    # NumPy 2.4 with ml_dtypes 0.6: np.clip returns float32 for bfloat16
    result = x if min is None else np.maximum(x, min)
    return (np.positive(result) if min is None else result) if max is None else np.minimum(result, max)


def _round_bfloat16(x: np.ndarray, decimals: int) -> np.ndarray:
    return np.round(x.astype(np.float32), decimals).astype(x.dtype)


round = ByDType(np.round, {dt.bfloat16: _round_bfloat16})


def nan_to_num(x: np.ndarray, nan: float, posinf: float | None, neginf: float | None) -> np.ndarray:
    if x.dtype.kind in "biu":
        return x.copy()
    if x.dtype.kind == "c":
        result = np.empty_like(x)
        result.real = nan_to_num(np.real(x), nan, posinf, neginf)
        result.imag = nan_to_num(np.imag(x), nan, posinf, neginf)
        return result
    largest = ml_dtypes.finfo(x.dtype).max
    ends = (largest if posinf is None else posinf, -largest if neginf is None else neginf)
    with np.errstate(over="ignore"):
        # NumPy 2.4 with ml_dtypes 0.6: text ends the process in the constructor; the product refuses it
        high, low, other = (x.dtype.type(1.0 * value) for value in (*ends, nan))
    return np.where(x == np.inf, high, np.where(x == -np.inf, low, np.where(np.isnan(x), other, x)))
