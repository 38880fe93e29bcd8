"""Comparison, logic and choice on MLX."""

from __future__ import annotations

import mlx.core as mx

from ember_ml.backend.contract import ByDType
from ember_ml.backend.mlx.empty_reductions import all_along, any_along
from ember_ml.backend.mlx.graph_probe import is_vectorizing
from ember_ml.backend.mlx.vmap_rules import not_equal
from ember_ml.core import dtypes as dt

equal = mx.equal
less = mx.less
less_equal = mx.less_equal
greater = mx.greater
greater_equal = mx.greater_equal
isfinite = mx.isfinite
isinf = mx.isinf
isnan = mx.isnan
isneginf = mx.isneginf
isposinf = mx.isposinf
where = mx.where


def _is_true(x: mx.array) -> mx.array:
    return x if x.dtype == mx.bool_ else x != 0


def logical_and(x: mx.array, y: mx.array) -> mx.array:
    return mx.logical_and(_is_true(x), _is_true(y))


def logical_or(x: mx.array, y: mx.array) -> mx.array:
    return mx.logical_or(_is_true(x), _is_true(y))


def logical_xor(x: mx.array, y: mx.array) -> mx.array:
    return not_equal(_is_true(x), _is_true(y))


def logical_not(x: mx.array) -> mx.array:
    return mx.logical_not(_is_true(x))


def _always(x: mx.array) -> mx.array:
    return mx.ones(x.shape, dtype=mx.bool_)


isreal = ByDType(_always, {dt.complex64: lambda x: mx.imag(x) == 0})


def _wide(x: mx.array) -> mx.array:
    """Cast half precision to float32, integers and bools to float64 where the device has it."""
    if mx.issubdtype(x.dtype, mx.inexact):
        return x.astype(mx.float32) if x.dtype.size == 2 else x
    return x.astype(mx.float64 if mx.default_device() == mx.cpu else mx.float32)


def isclose(x: mx.array, y: mx.array, rtol: float, atol: float, equal_nan: bool) -> mx.array:
    x, y = _wide(x), _wide(y)
    near = mx.logical_and(mx.abs(x - y) <= atol + rtol * mx.abs(y), mx.isfinite(y))
    close = mx.logical_or(near, x == y)
    return mx.logical_or(close, mx.logical_and(mx.isnan(x), mx.isnan(y))) if equal_nan else close


def allclose(x: mx.array, y: mx.array, rtol: float, atol: float, equal_nan: bool) -> mx.array:
    return all_along(isclose(x, y, rtol, atol, equal_nan))


def _isin(x: mx.array, test_elements: mx.array, invert: bool) -> mx.array:
    """Search by bisection: the first element that is not less is equal, or none is."""
    if not test_elements.size:
        return mx.full(x.shape, invert, dtype=mx.bool_)
    if is_vectorizing():  # MLX 0.32: no vmap of searchsorted over the sorted elements
        return _isin_of_complex(x, test_elements, invert)
    ordered = mx.sort(mx.flatten(test_elements))
    place = mx.searchsorted(ordered, mx.flatten(x)).astype(mx.int64)
    found = mx.take(ordered, mx.minimum(place, ordered.size - 1)) == mx.flatten(x)
    return mx.reshape(mx.logical_not(found) if invert else found, x.shape)


def _isin_of_complex(x: mx.array, test_elements: mx.array, invert: bool) -> mx.array:
    found = any_along(mx.expand_dims(x, -1) == mx.flatten(test_elements), -1)
    return mx.logical_not(found) if invert else found


isin = ByDType(_isin, {dt.complex64: _isin_of_complex})
