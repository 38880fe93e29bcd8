"""Products of tensors, on NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ember_ml import dtypes as dt
from ember_ml.backend.contract import ByDType
from ember_ml.backend.host import host_dtypes

_BFLOAT16 = host_dtypes[dt.bfloat16]


def _matmul_bfloat16(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """NumPy leaves the result in float32."""
    return np.asarray(np.matmul(x.astype(np.float32), y.astype(np.float32))).astype(_BFLOAT16)


def _matmul_float16(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """float16 overflows so soon that infinity is an ordinary result; NumPy warns of it."""
    with np.errstate(over="ignore"):
        return np.matmul(x, y)


matmul = ByDType(np.matmul, {dt.bfloat16: _matmul_bfloat16, dt.float16: _matmul_float16})


def _vecdot(x: np.ndarray, y: np.ndarray, axis: int) -> np.ndarray:
    return np.asarray(np.linalg.vecdot(x, y, axis=axis))  # type: ignore[reportCallIssue]


def _vecdot_bfloat16(x: np.ndarray, y: np.ndarray, axis: int) -> np.ndarray:
    return _vecdot(x.astype(np.float32), y.astype(np.float32), axis).astype(_BFLOAT16)


vecdot = ByDType(_vecdot, {dt.bfloat16: _vecdot_bfloat16})


def einsum(subscripts: str, operands: Sequence[np.ndarray]) -> Any:
    if any(x.dtype == _BFLOAT16 for x in operands):
        wide = [x.astype(np.float32) for x in operands]
        return np.asarray(np.einsum(subscripts, *wide, optimize=True)).astype(_BFLOAT16)
    # without ``optimize`` it multiplies matrices element by element; sums of everything come as NumPy's scalars
    return np.asarray(np.einsum(subscripts, *operands, optimize=True))


diagonal = np.diagonal
