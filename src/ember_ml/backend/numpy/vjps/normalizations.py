"""VJPs of normalizations, in NumPy itself.

The interface is that of ``basic.py``; the forward pass saves what the backward pass would otherwise compute again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ember_ml.backend.common.axes import axis_of
from ember_ml.backend.numpy.vjps.basic import Wanted, column_sums, is_last, rows_of

__all__ = ["VJPS"]

Array = np.ndarray[Any, Any]


def _unit_rows(rows: Array, epsilon: float) -> Array:
    """Divide rows in place by the root of their mean square; return the reciprocal of that root."""
    inverse = np.vecdot(rows, rows)
    inverse /= rows.dtype.type(rows.shape[1])
    inverse += rows.dtype.type(epsilon)
    np.sqrt(inverse, out=inverse)
    np.reciprocal(inverse, out=inverse)
    rows *= inverse[:, None]
    return inverse


def _unit_back(g: Array, unit: Array, inverse: Array, factor: Any) -> Array:
    """Return the gradient of rows that were normalized and multiplied by ``factor``."""
    found = g * (1 if factor is None else factor)
    along = np.vecdot(found, unit)
    along /= g.dtype.type(-g.shape[1])
    part = unit * along[:, None]
    found += part
    found *= inverse[:, None]
    return found


def _layer(x: Array, gamma: Any, beta: Any, axis: Any, epsilon: float) -> Any:
    if not is_last(x, axis, gamma, beta):
        return None, None
    rows = rows_of(x)
    with np.errstate(all="ignore"):
        means = np.add.reduce(rows, 1, keepdims=True)
        means /= x.dtype.type(rows.shape[1])
        unit = rows - means
        inverse = _unit_rows(unit, epsilon)
        result = unit if gamma is None else unit * gamma
        if beta is not None:
            result = result + beta if gamma is None else np.add(result, beta, out=result)
    return result.reshape(x.shape), (unit, inverse)


def _layer_back(g: Array, wanted: Wanted, saved: Any, gamma: Any) -> Any:
    unit, inverse = saved
    rows = rows_of(g)
    found = None
    if wanted[0]:
        found = _unit_back(rows, unit, inverse, gamma)
        means = np.add.reduce(found, 1, keepdims=True)
        means /= g.dtype.type(rows.shape[1])
        found -= means
        found = found.reshape(g.shape)
    return found, wanted[1] and column_sums(rows * unit), wanted[2] and column_sums(rows)


def _rms(x: Array, scale: Any, axis: Any, epsilon: float) -> Any:
    if not is_last(x, axis, scale):
        return None, None
    unit = rows_of(x).copy()
    with np.errstate(all="ignore"):
        inverse = _unit_rows(unit, epsilon)
        result = unit if scale is None else unit * scale
    return result.reshape(x.shape), (unit, inverse)


def _rms_back(g: Array, wanted: Wanted, saved: Any, scale: Any) -> Any:
    unit, inverse = saved
    rows = rows_of(g)
    found = _unit_back(rows, unit, inverse, scale).reshape(g.shape) if wanted[0] else None
    return found, wanted[1] and column_sums(rows * unit)


def _mean_of_rows(rows: Array) -> Array:
    mean = column_sums(rows)
    mean /= rows.dtype.type(len(rows))
    return mean


def _moments(x: Array, axis: int, offset: Any, scale: Any, epsilon: float) -> Any:
    place = axis_of(axis, x.ndim)
    length = x.shape[place : place + 1]
    if not x.size or any(p is not None and p.shape != length for p in (offset, scale)):
        return None, None
    last = x if place == x.ndim - 1 else np.moveaxis(x, place, -1)
    rows = rows_of(last)
    with np.errstate(all="ignore"):
        mean = _mean_of_rows(rows)
        deviation = rows - mean
        result = deviation * deviation
        variance = _mean_of_rows(result)
        inverse = np.reciprocal(np.sqrt(variance + x.dtype.type(epsilon)))
        np.multiply(deviation, inverse if scale is None else inverse * scale, out=result)
        if offset is not None:
            result += offset
    result = result.reshape(last.shape)
    result = result if last is x else np.moveaxis(result, -1, place)
    return (result, mean, variance), (deviation, inverse, place)


def _moments_back(g: Array, wanted: Wanted, saved: Any, scale: Any) -> Any:
    deviation, inverse, place = saved
    last = np.moveaxis(g, place, -1)
    rows = rows_of(last)
    of_g, along = column_sums(rows), column_sums(rows * deviation)
    along *= inverse
    by_x = None
    if wanted[0]:
        count = g.dtype.type(len(rows))
        by_x = deviation * (inverse * along / -count)
        by_x += rows
        by_x -= of_g / count
        by_x *= inverse if scale is None else inverse * scale
        by_x = np.moveaxis(by_x.reshape(last.shape), -1, place)
    return by_x, wanted[1] and of_g, wanted[2] and along


VJPS: dict[str, tuple[Callable[..., Any] | None, Callable[..., Any]]] = {
    "layer_normalization": (_layer, _layer_back),
    "moments_normalization": (_moments, _moments_back),
    "rms_normalization": (_rms, _rms_back),
}
