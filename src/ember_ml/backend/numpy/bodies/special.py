"""Special functions on NumPy: computed in double precision and rounded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ember_ml.backend.common import special as formulas

_BLOCK = 1 << 14  # elements at a time: intermediate results stay in the cache


def _in_double(function: Callable[[np.ndarray, bool], Any]) -> Callable[[np.ndarray], np.ndarray]:
    """Wrap ``function(x, is_short)`` to compute in float64; narrower dtypes need the short form of its series only."""

    def body(x: np.ndarray) -> np.ndarray:
        result = np.empty(x.shape, x.dtype)
        numbers, found = x.ravel(), result.reshape(-1)
        with np.errstate(all="ignore"):
            for start in range(0, numbers.size, _BLOCK):
                part = slice(start, start + _BLOCK)
                found[part] = function(numbers[part].astype(np.float64), x.dtype.itemsize < 8)
        return result

    return body


def _erf(x: np.ndarray, is_short: bool = False) -> np.ndarray:
    return formulas.erf(np, np.exp, x, is_short)


def _erfc(x: np.ndarray, is_short: bool = False) -> np.ndarray:
    return formulas.erfc(np, np.exp, x, is_short)


erf = _in_double(_erf)
erfc = _in_double(_erfc)
erfinv = _in_double(lambda x, is_short: formulas.erfinv(np, np.exp, _erf, _erfc, x))
lgamma = _in_double(lambda x, is_short: formulas.lgamma(np, np.sin, x, is_short))
digamma = _in_double(lambda x, is_short: formulas.digamma(np, x))
i0 = _in_double(lambda x, is_short: formulas.bessel_i0(np, np.exp, x, is_short))
