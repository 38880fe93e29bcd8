"""VJPs of activations and attention, in NumPy itself.

The interface is that of ``basic.py``; the forward pass saves what the backward pass would otherwise compute again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ember_ml.backend.common.attention import by_groups, check_attention, scale_of
from ember_ml.backend.numpy.gelu import gelu
from ember_ml.backend.numpy.vjps.basic import Wanted, is_last, unbroadcast

__all__ = ["VJPS"]

Array = np.ndarray[Any, Any]

_SCORES = 1 << 25
"""The most attention scores that are kept for the backward pass."""


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
    if not g.ndim or not is_last(r, axis):
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
        wanted[3] and unbroadcast(slopes.reshape(len(g), -1, *slopes.shape[-2:]), wanted[3]),
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
    "sigmoid": (None, _sigmoid_back),
    "silu": (_silu, _silu_back),
    "softmax": (None, _softmax_back),
    "tanh": (None, _tanh_back),
}
