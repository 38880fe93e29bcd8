"""Products of tensors, on NumPy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ember_ml.backend.common.linalg import check_linear
from ember_ml.backend.contract import ByDType
from ember_ml.backend.host_arrays import host_dtypes
from ember_ml.core import dtypes as dt

_BFLOAT16 = host_dtypes[dt.bfloat16]


def _matmul_bfloat16(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    # NumPy 2.4 with ml_dtypes 0.6: leaves the result in float32
    return np.asarray(np.matmul(x.astype(np.float32), y.astype(np.float32))).astype(_BFLOAT16)


def _matmul_float16(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    # NumPy 2.4: warns of overflow; in float16 infinity is an ordinary result
    with np.errstate(over="ignore"):
        return np.matmul(x, y)


matmul = ByDType(np.matmul, {dt.bfloat16: _matmul_bfloat16, dt.float16: _matmul_float16})


def _linear(x: np.ndarray, weight: np.ndarray, bias: np.ndarray | None) -> np.ndarray:
    """Multiply all rows in one product and add the bias in place."""
    # NumPy 2.4: multiplies one matrix of the stack after the other
    check_linear(weight, bias)
    if x.ndim > 2:
        rows = x.reshape(math.prod(x.shape[:-1]), x.shape[-1])
        result = np.matmul(rows, weight.T).reshape(*x.shape[:-1], len(weight))
    else:
        result = np.matmul(x, weight.T)
    if bias is not None:
        result += bias
    return result


def _linear_bfloat16(x: np.ndarray, weight: np.ndarray, bias: np.ndarray | None) -> np.ndarray:
    wide = None if bias is None else bias.astype(np.float32)
    return _linear(x.astype(np.float32), weight.astype(np.float32), wide).astype(_BFLOAT16)


def _linear_float16(x: np.ndarray, weight: np.ndarray, bias: np.ndarray | None) -> np.ndarray:
    with np.errstate(over="ignore"):
        return _linear(x, weight, bias)


linear = ByDType(_linear, {dt.bfloat16: _linear_bfloat16, dt.float16: _linear_float16})


def _vecdot(x: np.ndarray, y: np.ndarray, axis: int) -> np.ndarray:
    if not (x.ndim and y.ndim):
        raise IndexError(f"axis {axis} is out of range for a tensor of 0 dimensions")
    return np.asarray(np.linalg.vecdot(x, y, axis=axis))  # type: ignore[reportCallIssue]


def _vecdot_bfloat16(x: np.ndarray, y: np.ndarray, axis: int) -> np.ndarray:
    return _vecdot(x.astype(np.float32), y.astype(np.float32), axis).astype(_BFLOAT16)


vecdot = ByDType(_vecdot, {dt.bfloat16: _vecdot_bfloat16})


def einsum(subscripts: str, operands: Sequence[np.ndarray]) -> Any:
    if any(x.dtype == _BFLOAT16 for x in operands):
        wide = [x.astype(np.float32) for x in operands]
        return np.asarray(np.einsum(subscripts, *wide, optimize=True)).astype(_BFLOAT16)
    # NumPy 2.4: without optimize, matrices are multiplied element by element; full sums are scalars
    return np.asarray(np.einsum(subscripts, *operands, optimize=True))


diagonal = np.diagonal
