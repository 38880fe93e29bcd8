"""VJPs of normalizations, activations and attention, in NumPy itself.

The interface is that of ``basic.py``; the forward pass saves what the backward pass would otherwise compute again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ember_ml.backend.common.attention import by_groups, check_attention, scale_of
from ember_ml.backend.numpy.gelu import gelu
from ember_ml.backend.numpy.vjps.basic import Wanted, _column_sums, _rows, _unbroadcast

__all__ = ["VJPS"]

Array = np.ndarray[Any, Any]

_SCORES = 1 << 25
"""The most attention scores that are kept for the backward pass."""


def _is_last(x: Array, axis: Any, *parameters: Array | None) -> bool:
    """Whether rows are normalized, with parameters of their length."""
    is_usual = x.ndim > 0 and axis in (-1, x.ndim - 1, (-1,), (x.ndim - 1,)) and x.size > 0
    return is_usual and all(p is None or p.shape == x.shape[-1:] for p in parameters)


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
    if not _is_last(x, axis, gamma, beta):
        return None, None
    rows = _rows(x)
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
    rows = _rows(g)
    found = None
    if wanted[0]:
        found = _unit_back(rows, unit, inverse, gamma)
        means = np.add.reduce(found, 1, keepdims=True)
        means /= g.dtype.type(rows.shape[1])
        found -= means
        found = found.reshape(g.shape)
    return found, wanted[1] and _column_sums(rows * unit), wanted[2] and _column_sums(rows)


def _rms(x: Array, scale: Any, axis: Any, epsilon: float) -> Any:
    if not _is_last(x, axis, scale):
        return None, None
    unit = _rows(x).copy()
    with np.errstate(all="ignore"):
        inverse = _unit_rows(unit, epsilon)
        result = unit if scale is None else unit * scale
    return result.reshape(x.shape), (unit, inverse)


def _rms_back(g: Array, wanted: Wanted, saved: Any, scale: Any) -> Any:
    unit, inverse = saved
    rows = _rows(g)
    found = _unit_back(rows, unit, inverse, scale).reshape(g.shape) if wanted[0] else None
    return found, wanted[1] and _column_sums(rows * unit)


def _gelu(x: Array, approximate: bool) -> Any:
    """Return the result, and its derivative as the residual."""
    return gelu(x, approximate, True) if x.ndim else (None, None)


def _gelu_back(g: Array, wanted: Wanted, saved: Any) -> Any:
    return (g * saved,)


def _silu(x: Array) -> Any:
    """Return the result, and the sigmoid as the residual."""
    if not x.ndim:
        return None, None
    gate = np.negative(x)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        np.exp(gate, out=gate)
        gate += 1
        np.reciprocal(gate, out=gate)
        return x * gate, gate


def _silu_back(g: Array, wanted: Wanted, saved: Array, r: Array) -> Any:
    slope = 1 - saved
    with np.errstate(invalid="ignore"):
        slope *= r
    slope += saved
    slope *= g
    return (slope,)


def _sigmoid_back(g: Array, wanted: Wanted, r: Array) -> Any:
    if not g.ndim:  # NumPy 2.4: returns scalars for 0-d
        return NotImplemented
    slope = 1 - r
    slope *= r
    slope *= g
    return (slope,)


def _tanh_back(g: Array, wanted: Wanted, r: Array) -> Any:
    if not g.ndim:
        return NotImplemented
    slope = r * r
    np.subtract(1, slope, out=slope)
    slope *= g
    return (slope,)


def _softmax_back(g: Array, wanted: Wanted, r: Array, axis: int) -> Any:
    if not g.ndim or not _is_last(r, axis):
        return NotImplemented
    slope = g - np.vecdot(g, r)[..., None]
    slope *= r
    return (slope,)


def _split_heads(x: Array, heads: int) -> Array:
    """Reshape (batch, length, all heads, dim) to (batch, key heads, query heads per key head, length, dim)."""
    batch, length, all_heads, dim = x.shape
    return x.reshape(batch, length, heads, all_heads // heads, dim).transpose(0, 2, 3, 1, 4)


def _attention(query: Array, key: Array, value: Array, bias: Any, mask: Any, scale: Any, is_causal: bool) -> Any:
    try:
        check_attention(query.shape, key.shape, value.shape, bias, mask)
    except ValueError:
        return None, None
    batch, queries, all_heads, _ = query.shape
    keys, heads = key.shape[1:3]
    if not 0 < batch * all_heads * queries * keys <= _SCORES:
        return None, None
    scaled = _split_heads(query, heads) * query.dtype.type(scale_of(scale, query.shape))
    weights = np.matmul(scaled, _split_heads(key, heads).swapaxes(-1, -2))
    if bias is not None:
        weights += by_groups(np, bias, heads)
    if mask is not None:
        np.copyto(weights, -np.inf, where=~by_groups(np, mask, heads))
    if is_causal:
        np.copyto(weights, -np.inf, where=~np.tri(queries, keys, keys - queries, dtype=bool))
    top = np.maximum.reduce(weights, -1, keepdims=True)
    may_see_nothing = bias is not None or mask is not None or (is_causal and queries > keys)
    weights -= np.where(top == -np.inf, 0, top) if may_see_nothing else top
    np.exp(weights, out=weights)
    total = np.add.reduce(weights, -1, keepdims=True)
    if may_see_nothing:
        total[total == 0] = 1
    weights *= np.reciprocal(total, out=total)
    result = np.empty((batch, queries, all_heads, value.shape[3]), weights.dtype)
    np.matmul(weights, _split_heads(value, heads), out=_split_heads(result, heads))
    return result, (weights, scaled)


def _attention_back(
    g: Array,
    wanted: Wanted,
    saved: Any,
    r: Array,
    key: Array,
    value: Array,
    scale: Any,
) -> Any:
    weights, scaled = saved
    heads, own = key.shape[2], _split_heads(g, key.shape[2])
    slopes = np.matmul(own, _split_heads(value, heads).swapaxes(-1, -2))
    slopes -= _split_heads(np.vecdot(g, r)[..., None], heads)  # per query: the sum of slopes times weights
    slopes *= weights
    by_query = None
    if wanted[0]:
        by_query = np.empty(wanted[0][2], g.dtype)
        np.matmul(slopes, _split_heads(key, heads), out=_split_heads(by_query, heads))
        by_query *= g.dtype.type(scale_of(scale, by_query.shape))
    return (
        by_query,
        wanted[1] and _sum_over_queries(slopes, scaled, key),
        wanted[2] and _sum_over_queries(weights, own, value),
        wanted[3] and _unbroadcast(slopes.reshape(len(g), -1, *slopes.shape[-2:]), wanted[3]),
    )


def _sum_over_queries(weights: Array, x: Array, like: Array) -> Array:
    """Sum the contributions of the queries to each key, over all heads that share it."""
    if weights.shape[2] > 1:
        return np.add.reduce(np.matmul(weights.swapaxes(-1, -2), x), 2).transpose(0, 2, 1, 3)
    found = np.empty(like.shape, x.dtype)
    np.matmul(weights.swapaxes(-1, -2), x, out=_split_heads(found, like.shape[2]))
    return found


VJPS: dict[str, tuple[Callable[..., Any] | None, Callable[..., Any]]] = {
    "dot_product_attention": (_attention, _attention_back),
    "gelu": (_gelu, _gelu_back),
    "layer_normalization": (_layer, _layer_back),
    "rms_normalization": (_rms, _rms_back),
    "sigmoid": (None, _sigmoid_back),
    "silu": (_silu, _silu_back),
    "softmax": (None, _softmax_back),
    "tanh": (None, _tanh_back),
}
