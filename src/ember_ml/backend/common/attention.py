"""Attention: check the shapes, and compute the formula with any library that has NumPy's names."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

__all__ = ["attend", "by_groups", "check_attention", "scale_of"]

_LAYOUT = "(batch, length, heads, dim)"


def check_attention(
    query: Sequence[int], key: Sequence[int], value: Sequence[int], bias: Any = None, mask: Any = None
) -> None:
    """Raise ``ValueError`` where the shapes of an attention do not fit together."""
    is_plain = bias is None and mask is None and key == value and len(query) == 4
    if is_plain and query[0] == key[0] and query[2:] == key[2:] and key[2]:
        return  # in the most frequent case few tests suffice
    for name, shape in (("query", query), ("key", key), ("value", value)):
        if len(shape) != 4:
            raise ValueError(f"{name} has {len(shape)} dimensions; it must have 4: {_LAYOUT}")
    if tuple(key[:3]) != tuple(value[:3]):
        raise ValueError(f"key {tuple(key)} and value {tuple(value)} differ in batch, length or heads")
    if query[0] != key[0] or query[3] != key[3]:
        raise ValueError(f"query {tuple(query)} and key {tuple(key)} differ in batch or dim")
    if key[2] == 0 or query[2] % key[2]:
        raise ValueError(f"{key[2]} heads of key and value do not divide the {query[2]} heads of query")
    scores = (query[0], query[2], query[1], key[1])
    for name, tensor in (("bias", bias), ("mask", mask)):
        if tensor is not None and not _fits(tensor.shape, scores):
            raise ValueError(
                f"{name} of shape {tuple(tensor.shape)} does not broadcast to (batch, heads, queries, keys) = {scores}"
            )


def _fits(shape: Sequence[int], scores: tuple[int, ...]) -> bool:
    """Whether a tensor of ``shape`` broadcasts to ``scores``."""
    return len(shape) <= 4 and all(n == 1 or n == m for n, m in zip(shape, scores[4 - len(shape) :], strict=True))


def scale_of(scale: float | None, query: Sequence[int]) -> float:
    """Return the factor of the products of queries and keys: by default one over the root of their dimension."""
    return 1.0 / math.sqrt(max(query[-1], 1)) if scale is None else float(scale)


def by_groups(xp: Any, scores: Any, heads: int) -> Any:
    """Reshape a bias or mask for scores of shape (batch, key heads, query heads per key head, queries, keys)."""
    shape = (1,) * (4 - scores.ndim) + tuple(scores.shape)
    groups = (1, 1) if shape[1] == 1 else (heads, shape[1] // heads)
    return xp.reshape(scores, (shape[0], *groups, *shape[2:]))


def attend(xp: Any, query: Any, key: Any, value: Any, bias: Any, mask: Any, scale: float) -> Any:
    """Return the averages of values, weighted by the softmax of the scores; zeros where a query sees no key."""
    batch, queries, all_heads, dim = query.shape
    keys, heads, width = value.shape[1:]
    query = xp.reshape(query, (batch, queries, heads, all_heads // heads, dim))
    query = xp.multiply(xp.transpose(query, (0, 2, 3, 1, 4)), scale)
    scores = xp.matmul(query, xp.expand_dims(xp.transpose(key, (0, 2, 3, 1)), 2))
    if bias is not None:
        scores = xp.add(scores, by_groups(xp, bias, heads))
    if mask is not None:
        scores = xp.where(by_groups(xp, mask, heads), scores, -math.inf)
    value = xp.expand_dims(xp.transpose(value, (0, 2, 1, 3)), 2)
    if keys:
        top = xp.stop_gradient(xp.max(scores, axis=-1, keepdims=True))
        weights = xp.exp(xp.subtract(scores, xp.where(xp.equal(top, -math.inf), 0.0, top)))
        total = xp.sum(weights, axis=-1, keepdims=True)
        result = xp.divide(xp.matmul(weights, value), xp.where(xp.equal(total, 0.0), 1.0, total))
    else:
        result = xp.matmul(scores, value)
    return xp.reshape(xp.transpose(result, (0, 3, 1, 2, 4)), (batch, queries, all_heads, width))
