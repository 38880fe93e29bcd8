"""Special functions on NumPy, which has none of them: computed in double precision and rounded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ember_ml.backend import formulas
from ember_ml.backend.axes import axis_of


def _in_double(function: Callable[[np.ndarray], Any]) -> Callable[[np.ndarray], np.ndarray]:
    def body(x: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            return np.asarray(function(x.astype(np.float64))).astype(x.dtype)

    return body


def _erf(x: np.ndarray) -> np.ndarray:
    return formulas.erf(np, np.exp, x, False)


def _erfc(x: np.ndarray) -> np.ndarray:
    return formulas.erfc(np, np.exp, x, False)


erf = _in_double(_erf)
erfc = _in_double(_erfc)
erfinv = _in_double(lambda x: formulas.erfinv(np, np.exp, _erf, _erfc, x))
lgamma = _in_double(lambda x: formulas.lgamma(np, np.sin, x, False))
digamma = _in_double(lambda x: formulas.digamma(np, x))
i0 = _in_double(lambda x: formulas.bessel_i0(np, np.exp, x, False))


def sigmoid(x: np.ndarray) -> np.ndarray:
    wide = x if x.dtype.itemsize >= 4 else x.astype(np.float32)
    with np.errstate(under="ignore"):
        small = np.exp(-np.abs(wide))
        return (np.where(wide < 0, small, 1) / (1 + small)).astype(x.dtype)


def relu(x: np.ndarray) -> np.ndarray:
    return np.maximum(x, x.dtype.type(0))


def _shifted(x: np.ndarray, axis: int) -> np.ndarray:
    """``x`` less its largest element along ``axis``, in float32 at least."""
    wide = x if x.dtype.itemsize >= 4 else x.astype(np.float32)
    if not x.size:
        return wide
    with np.errstate(invalid="ignore"):
        return wide - wide.max(axis=axis, keepdims=True)


def softmax(x: np.ndarray, axis: int) -> np.ndarray:
    axis = axis_of(axis, x.ndim)
    powers = np.exp(_shifted(x, axis))
    return (powers / powers.sum(axis=axis, keepdims=True, dtype=np.float64).astype(powers.dtype)).astype(x.dtype)


def log_softmax(x: np.ndarray, axis: int) -> np.ndarray:
    axis = axis_of(axis, x.ndim)
    shifted = _shifted(x, axis)
    total = np.exp(shifted).sum(axis=axis, keepdims=True, dtype=np.float64)
    return (shifted - np.log(total).astype(shifted.dtype)).astype(x.dtype)
