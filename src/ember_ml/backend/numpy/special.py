"""Special functions on NumPy, which has none of them: computed in double precision and rounded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ember_ml.backend import formulas


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
