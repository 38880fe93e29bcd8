"""Running sums and correlation, on NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from ember_ml.backend.common.axes import check_scalar_axis
from ember_ml.backend.numpy.bodies.reductions import accumulating, in_float32

Array = np.ndarray[Any, Any]

_WIDER = {np.dtype(np.float32): np.float64, np.dtype(np.complex64): np.complex128}


def _cumsum(x: Array, axis: int | None, dtype: None) -> Array:
    if not x.ndim:
        check_scalar_axis(axis)
    wider = _WIDER.get(x.dtype)
    if wider is None:
        return np.cumsum(x, axis)
    # NumPy 2.4: adds one element after the other, which loses digits (numpy#14909)
    return np.cumsum(x, axis, wider).astype(x.dtype)


def _cumprod(x: Array, axis: int | None, dtype: None) -> Array:
    if not x.ndim:
        check_scalar_axis(axis)
    return np.cumprod(x, axis)


def _correlate(x: Array, y: Array, mode: str) -> Array:
    return np.correlate(x, y, mode)  # type: ignore[arg-type]  # the mode is checked there


cumsum = accumulating(_cumsum)
cumprod = accumulating(_cumprod)
correlate = in_float32(_correlate)
