"""Activations on NumPy, where computing in place saves most of the time."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from ember_ml.backend.common.axes import axes_of
from ember_ml.backend.numpy.bodies.reductions import in_float32, total
from ember_ml.backend.numpy.gelu import gelu as compute_gelu

Array = np.ndarray[Any, Any]


@cache
def zero_of(dtype: np.dtype[Any]) -> Array:
    """Return 0 as a tensor, which takes a ufunc half the time of a number."""
    found = np.zeros((), dtype)
    found.flags.writeable = False
    return found


def relu(x: Array) -> Array:
    return np.maximum(x, zero_of(x.dtype))


def _sigmoid(x: Array) -> Array:
    result = np.negative(x, out=np.empty_like(x))  # NumPy 2.4: without out, a scalar for 0-d
    with np.errstate(over="ignore", under="ignore"):  # the reciprocal of infinity is right
        np.exp(result, out=result)
        result += 1
        return np.reciprocal(result, out=result)


def _silu(x: Array) -> Array:
    result = np.negative(x, out=np.empty_like(x))
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        np.exp(result, out=result)
        result += 1
        return np.divide(x, result, out=result)


def _gelu(x: Array, approximate: bool) -> Array:
    return compute_gelu(x, approximate)[0]


def _below_largest(x: Array, axis: tuple[int, ...]) -> Array:
    if not x.size:
        return x.copy()
    with np.errstate(invalid="ignore"):
        return np.subtract(x, x.max(axis=axis, keepdims=True))


def _softmax(x: Array, axis: Any) -> Array:
    axis = axes_of(axis, x.ndim)
    powers = _below_largest(x, axis)
    with np.errstate(under="ignore"):
        np.exp(powers, out=powers)
        powers /= total(powers, axis, True)
    return powers


def _log_softmax(x: Array, axis: Any) -> Array:
    axis = axes_of(axis, x.ndim)
    result = _below_largest(x, axis)
    with np.errstate(under="ignore"):
        result -= np.log(total(np.exp(result), axis, True))
    return result


sigmoid = in_float32(_sigmoid)
silu = in_float32(_silu)
gelu = in_float32(_gelu)
softmax = in_float32(_softmax)
log_softmax = in_float32(_log_softmax)
