"""Products of tensors, on NumPy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ember_ml.backend.common.linalg import check_linear
from ember_ml.backend.contract import Body, ByDType
from ember_ml.backend.host_arrays import as_float32, cast_host, host_dtypes
from ember_ml.core import dtypes as dt

_HALVES = frozenset(host_dtypes[half] for half in dt.HALVES)


def _through_float32(native: Body) -> Body:
    """Wrap ``native`` to compute tensors of half precision in float32, rounded once at the end."""

    # NumPy 2.4: multiplies float16 without BLAS, a thousand times slower; with ml_dtypes 0.6: bfloat16 becomes float32
    def body(x: np.ndarray, *rest: Any) -> np.ndarray:
        wide = [as_float32(y) if isinstance(y, np.ndarray) else y for y in rest]
        return cast_host(np.asarray(native(as_float32(x), *wide)), x.dtype)

    return body


def _in_float32(native: Body) -> ByDType:
    return ByDType(native, dict.fromkeys(dt.HALVES, _through_float32(native)))


matmul = _in_float32(np.matmul)


def _linear(x: np.ndarray, weight: np.ndarray, bias: np.ndarray | None) -> np.ndarray:
    """Multiply all rows in one product and add the bias in place."""
    # NumPy 2.4: multiplies one matrix of the stack after the other
    check_linear(weight, bias)
    if x.ndim == 2:
        result = x.dot(weight.T)  # for matrices the same as matmul, in half the time where they are small
    elif x.ndim > 2:
        rows = x.reshape(math.prod(x.shape[:-1]), x.shape[-1])
        result = rows.dot(weight.T).reshape(*x.shape[:-1], len(weight))
    else:
        result = np.matmul(x, weight.T)
    if bias is not None:
        result += bias
    return result


linear = _in_float32(_linear)


def _vecdot(x: np.ndarray, y: np.ndarray, axis: int) -> np.ndarray:
    if not (x.ndim and y.ndim):
        raise IndexError(f"axis {axis} is out of range for a tensor of 0 dimensions")
    return np.asarray(np.linalg.vecdot(x, y, axis=axis))  # type: ignore[reportCallIssue]


vecdot = _in_float32(_vecdot)


def einsum(subscripts: str, operands: Sequence[np.ndarray]) -> Any:
    half = operands[0].dtype
    if half in _HALVES:
        wide = [as_float32(x) for x in operands]
        return cast_host(np.asarray(np.einsum(subscripts, *wide, optimize=True)), half)
    # NumPy 2.4: without optimize, matrices are multiplied element by element; full sums are scalars
    return np.asarray(np.einsum(subscripts, *operands, optimize=True))


diagonal = np.diagonal
