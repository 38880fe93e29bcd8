"""Attention on NumPy, for a block of queries at a time: the scores stay in the cache and never fill the memory."""

from __future__ import annotations

import numpy as np

from ember_ml.backend.common.attention import by_groups, check_attention, scale_of
from ember_ml.backend.host_arrays import as_float32
from ember_ml.backend.numpy.cache_blocks import blocks

_BLOCK = 1 << 19  # scores


def dot_product_attention(
    query: np.ndarray,
    key: np.ndarray,
    value: np.ndarray,
    bias: np.ndarray | None,
    mask: np.ndarray | None,
    scale: float | None,
    is_causal: bool,
) -> np.ndarray:
    check_attention(query.shape, key.shape, value.shape, bias, mask)
    own, factor = query.dtype, scale_of(scale, query.shape)
    if own.itemsize < 4:
        query, key, value = (as_float32(x) for x in (query, key, value))
        bias = None if bias is None else as_float32(bias)
    batch, queries, all_heads, dim = query.shape
    keys, heads, width = value.shape[1:]
    places = (batch, heads, all_heads // heads, queries)
    query = query.reshape(batch, queries, *places[1:3], dim).transpose(0, 2, 3, 1, 4)
    key = key.transpose(0, 2, 3, 1)[:, :, np.newaxis]
    value = value.transpose(0, 2, 1, 3)[:, :, np.newaxis]
    if bias is not None:
        bias = np.broadcast_to(by_groups(np, bias, heads), (*places, keys))
    if mask is not None:
        mask = np.broadcast_to(by_groups(np, mask, heads), (*places, keys))
    result = np.zeros((batch, queries, *places[1:3], width), dtype=query.dtype)
    target = result.transpose(0, 2, 3, 1, 4)
    for block in blocks(places, max(_BLOCK // max(keys, 1), 1)):
        rows = range(queries)[block[3] if len(block) == 4 else slice(None)]
        seen = min(max(rows.stop + keys - queries, 0), keys) if is_causal else keys
        if not seen or not rows:
            continue
        scores = (query[block] * query.dtype.type(factor)) @ key[(*block[:2], ..., slice(seen))]
        if bias is not None:
            scores += bias[(*block, ..., slice(seen))]
        if mask is not None:
            np.copyto(scores, -np.inf, where=~mask[(*block, ..., slice(seen))])
        if is_causal:
            past = np.tri(len(rows), seen, rows.start + keys - queries, dtype=bool)
            np.copyto(scores, -np.inf, where=~past)
        top = scores.max(axis=-1, keepdims=True)
        scores -= np.where(top == -np.inf, 0, top)
        weights = np.exp(scores, out=scores)
        total = weights.sum(axis=-1, keepdims=True)
        part = weights @ value[(*block[:2], ..., slice(seen), slice(None))]
        target[block] = part / np.where(total == 0, 1, total)
    result = result.reshape(batch, queries, all_heads, width)
    if own.itemsize < 4:
        with np.errstate(over="ignore"):
            return result.astype(own)
    return result
