"""Attention by MLX's own function, which is one kernel on the GPU."""

from __future__ import annotations

import math
from typing import Any

import mlx.core as mx

from ember_ml.backend.common.attention import attend, check_attention, scale_of
from ember_ml.backend.contract import ByDType
from ember_ml.backend.mlx.bodies.exponential import exp_real
from ember_ml.core import dtypes as dt


def _attention(
    query: mx.array,
    key: mx.array,
    value: mx.array,
    bias: mx.array | None,
    mask: mx.array | None,
    scale: float | None,
    is_causal: bool,
) -> mx.array:
    check_attention(query.shape, key.shape, value.shape, bias, mask)
    own = query.dtype
    if own != mx.float32 and mx.default_device() == mx.cpu:  # MLX 0.32: rounds the scores
        query, key, value = (x.astype(mx.float32) for x in (query, key, value))
        bias = None if bias is None else bias.astype(mx.float32)
    bias, mask = (x[None] if x is not None and x.ndim == 0 else x for x in (bias, mask))
    queries, keys = query.shape[1], key.shape[1]
    if is_causal and (queries > keys or mask is not None or bias is not None):
        mask, is_causal = _with_past(mask, queries, keys), False
    seeing: Any = None
    how: Any = "causal" if is_causal else mask
    # MLX 0.32: a query that sees no key gets the mean of all values, or NaN
    if bias is not None:
        how = bias if mask is None else mx.where(mask, bias, -math.inf)
        seeing = mx.any(how != -math.inf, axis=-1, keepdims=True)
        how = mx.where(seeing, how, 0.0)
    elif mask is not None:
        seeing = mx.any(mask, axis=-1, keepdims=True)
        how = mx.logical_or(mask, mx.logical_not(seeing))
    rows = (mx.swapaxes(x, 1, 2) for x in (query, key, value))
    result = mx.fast.scaled_dot_product_attention(*rows, scale=scale_of(scale, query.shape), mask=how)
    if seeing is not None:
        result = mx.where(seeing, result, 0.0)
    return mx.swapaxes(result, 1, 2).astype(own)


def _with_past(mask: mx.array | None, queries: int, keys: int) -> mx.array:
    """Remove the keys that come after each query from the mask; the last query sees the last key."""
    past = mx.tri(queries, keys, keys - queries, dtype=mx.bool_)
    return past if mask is None else mx.logical_and(mask, past)


class _Double:
    """MLX's functions for the formula, with an exponential that is accurate in float64."""

    exp = staticmethod(exp_real)

    def __getattr__(self, name: str) -> Any:
        return getattr(mx, name)


def _attention_float64(
    query: mx.array,
    key: mx.array,
    value: mx.array,
    bias: mx.array | None,
    mask: mx.array | None,
    scale: float | None,
    is_causal: bool,
) -> mx.array:
    # MLX 0.32: softmax computes float64 in float32 (mlx#3047)
    check_attention(query.shape, key.shape, value.shape, bias, mask)
    if is_causal:
        mask = _with_past(mask, query.shape[1], key.shape[1])
    return attend(_Double(), query, key, value, bias, mask, scale_of(scale, query.shape))


dot_product_attention = ByDType(_attention, {dt.float64: _attention_float64})
