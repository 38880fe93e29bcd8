"""VJPs of the ops in which training spends its time, in NumPy itself.

The gradient rule of each op computes the same by ops, one parameter at a time, and covers every case that is not here.
A vjp takes the gradient of the result, in float32 or float64; for each tensor parameter a description of the tensor
that needs a gradient (its shape last), or None; then what it reads, by name: arguments of the op, ``r``, the result,
and ``saved``, the residuals of the forward pass. It returns a gradient for each tensor parameter, of its shape, or
NotImplemented. It changes in place only what it created: gradients are shared.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from ember_ml.backend import value_checks as checks
from ember_ml.backend.numpy.bodies.activations import zero_of

__all__ = ["VJPS", "column_sums", "is_last", "rows_of", "unbroadcast"]

Array = np.ndarray[Any, Any]
Wanted = tuple[Any, ...]

_add: Any = np.add.reduce
_largest: Any = np.maximum.reduce
_PART = 1 << 10
"""Rows that BLAS adds up at once."""


@lru_cache(maxsize=64)
def _ones(count: int, dtype: np.dtype[Any]) -> Array:
    found = np.ones(count, dtype)
    found.flags.writeable = False
    return found


def column_sums(g: Array) -> Array:
    """Sum over the rows of a matrix by BLAS, in a sixth of the time.

    The sums of parts are added, so that the error stays below 1e-6 of many rows too.
    """
    count = len(g)
    if count <= _PART:
        return _ones(count, g.dtype).dot(g)
    parts, rest = divmod(count, _PART)
    whole = g[: count - rest].reshape(parts, _PART, g.shape[1])
    total = _add(np.matmul(_ones(_PART, g.dtype), whole), 0)
    return total + column_sums(g[count - rest :]) if rest else total


def rows_of(x: Array) -> Array:
    return x if x.ndim == 2 else x.reshape(-1, x.shape[-1])


def is_last(x: Array, axis: Any, *parameters: Array | None) -> bool:
    """Whether rows are normalized, with parameters of their length."""
    is_usual = x.ndim > 0 and axis in (-1, x.ndim - 1, (-1,), (x.ndim - 1,)) and x.size > 0
    return is_usual and all(p is None or p.shape == x.shape[-1:] for p in parameters)


def unbroadcast(g: Array, want: Any) -> Array | None:
    """Undo broadcasting: sum the gradient over the repeated axes."""
    if want is None:
        return None
    shape = want[2]
    if g.shape == shape:
        return g
    if g.ndim > 1 and g.shape[-1:] == shape:
        return column_sums(rows_of(g))
    extra = g.ndim - len(shape)
    axes = tuple(i for i, n in enumerate(g.shape) if i < extra or (shape[i - extra] == 1 and n != 1))
    return np.asarray(_add(g, axes)).reshape(shape)


def _add_back(g: Array, wanted: Wanted) -> Any:
    return unbroadcast(g, wanted[0]), unbroadcast(g, wanted[1])


def _subtract_back(g: Array, wanted: Wanted) -> Any:
    y_back = unbroadcast(g, wanted[1])
    return unbroadcast(g, wanted[0]), y_back if y_back is None else np.negative(y_back, out=np.empty_like(y_back))


def _multiply_back(g: Array, wanted: Wanted, x: Any, y: Any) -> Any:
    if not g.ndim:  # NumPy 2.4: returns scalars for 0-d
        return NotImplemented
    return wanted[0] and unbroadcast(g * y, wanted[0]), wanted[1] and unbroadcast(g * x, wanted[1])


def _matmul_back(g: Array, wanted: Wanted, x: Array, y: Array) -> Any:
    if x.ndim == 2 == y.ndim:
        return wanted[0] and g.dot(y.T), wanted[1] and x.T.dot(g)
    if x.ndim < 2 or y.ndim < 2 or (y.ndim > 2 and x.shape[:-2] != y.shape[:-2]) or not x.size or not g.size:
        return NotImplemented
    if y.ndim > 2:
        return wanted[0] and np.matmul(g, y.swapaxes(-1, -2)), wanted[1] and np.matmul(x.swapaxes(-1, -2), g)
    rows = rows_of(g)
    return wanted[0] and rows.dot(y.T).reshape(x.shape), wanted[1] and rows_of(x).T.dot(rows)


def _linear_back(g: Array, wanted: Wanted, x: Array, weight: Array) -> Any:
    if not x.size or not g.size:
        return NotImplemented
    if x.ndim == 2:
        return wanted[0] and g.dot(weight), wanted[1] and g.T.dot(x), wanted[2] and column_sums(g)
    rows = rows_of(g)
    return (
        wanted[0] and rows.dot(weight).reshape(x.shape),
        wanted[1] and rows.T.dot(rows_of(x)),
        wanted[2] and column_sums(rows),
    )


def _relu_back(g: Array, wanted: Wanted, r: Array) -> Any:
    if not g.ndim:
        return NotImplemented
    slope = (r > zero_of(r.dtype)).astype(g.dtype)
    slope *= g
    return (slope,)


def _mean_back(g: Array, wanted: Wanted, axis: Any) -> Any:
    if axis is not None:
        return NotImplemented
    shape = wanted[0][2]
    filled = np.empty(shape, g.dtype)
    filled.fill(g.item() / (filled.size or 1))
    return (filled,)


def _crossentropy(target: Array, output: Array, from_logits: bool, axis: int) -> Any:
    last, shape = output.ndim - 1, output.shape
    is_usual = from_logits and (axis == -1 or axis == last) and checks.enabled
    if not is_usual or target.shape != shape[:-1] or not output.size or target.dtype.kind not in "iu":
        return None, None
    classes, count = target.reshape(-1), shape[-1]
    # the element at argmin takes a third of the time of the least one
    if classes[classes.argmin()] < 0 or classes[classes.argmax()] >= count:
        return None, None
    flat = (output - _largest(output, -1, None, None, True)).reshape(-1)
    at_classes = np.add(np.arange(0, flat.size, count), classes, dtype=np.intp, casting="unsafe")
    picked = flat[at_classes]
    rows = flat.reshape(-1, count)
    np.exp(rows, out=rows)
    totals = _add(rows, 1, None, None, True)
    loss = np.log(totals.reshape(-1))
    loss -= picked
    return loss.reshape(target.shape), (rows, totals, at_classes)


def _crossentropy_back(g: Array, wanted: Wanted, saved: Any) -> Any:
    """Return the probabilities, minus 1 at the class, times the gradient."""
    rows, totals, at_classes = saved
    slope = rows * (g.reshape(-1, 1) / totals)
    flat = slope.reshape(-1)
    flat[at_classes] -= g.reshape(-1)
    return (slope.reshape(wanted[0][2]),)


def _sum_back(g: Array, wanted: Wanted, axis: Any) -> Any:
    if axis is not None:
        return NotImplemented
    filled = np.empty(wanted[0][2], g.dtype)
    filled.fill(g.item())
    return (filled,)


VJPS: dict[str, tuple[Callable[..., Any] | None, Callable[..., Any]]] = {
    "add": (None, _add_back),
    "linear": (None, _linear_back),
    "matmul": (None, _matmul_back),
    "mean": (None, _mean_back),
    "multiply": (None, _multiply_back),
    "relu": (None, _relu_back),
    "sparse_categorical_crossentropy": (_crossentropy, _crossentropy_back),
    "subtract": (None, _subtract_back),
    "sum": (None, _sum_back),
}
"""For each op the forward pass that saves residuals, or None if the op's body serves, and the backward pass.

The forward pass returns the result and the residuals, or None twice where it does not apply; also for arguments that
the op refuses, whose body then says why.
"""
