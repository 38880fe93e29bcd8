"""Grouped-query attention: several heads of queries share one head of keys and values (Ainslie et al., 2023)."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from ember_ml import ops
from ember_ml.nn.layers.channel_mixing.linear import Linear
from ember_ml.nn.layers.sequence_mixing.attention import KeyValueCache
from ember_ml.nn.layers.sequence_mixing.base import SequenceMixingLayer
from ember_ml.nn.layers.sequence_mixing.rotary import Rotation, rotate
from ember_ml.nn.modules.module import Module
from ember_ml.typing import DTypeLike, Tensor, TensorLike

__all__ = ["GroupedQueryAttention", "causal_mask"]


class GroupedQueryAttention(SequenceMixingLayer):
    """``softmax(Q K.T * scale) V`` with heads of any width, for models whose sizes are read from a file.

    It differs from :class:`nn.Attention` in that the caller makes the rotation and the mask, once for all layers of a
    model, and in what can be set: the width of a head, norms of queries and keys, a cap of the scores, a window.

    Args:
        hidden: The width of input and result.
        heads: The number of heads of queries.
        groups: The number of heads of keys and values; None: as many.
        width: The width of a head; None: ``hidden / heads``.
        bias: Whether queries, keys and values have biases.
        output_bias: Whether the result has one; None: as ``bias`` says.
        is_fused: Whether queries, keys and values come from one linear map, ``qkv``.
        norm: Makes a norm of that width, applied to each head of queries and keys before they are turned; None: none.
        scale: The factor of the scores; None: ``1 / sqrt(width)``.
        cap: Scores become ``cap * tanh(score / cap)``; None: they stay.
        window: The number of last positions that a query sees, its own included; None: all. The cache keeps no more.
        dropout: The share of weights that become 0 in training.
        dtype: The dtype of the parameters.

    >>> from ember_ml import nn, ops
    >>> layer = nn.GroupedQueryAttention(64, heads=8, groups=2, width=16, window=4)
    >>> y, cache = layer(ops.ones((2, 5, 64)), is_causal=True, state=layer.initial_state(2))
    >>> ops.shape(y), ops.shape(cache.key)
    ((2, 5, 64), (2, 3, 2, 16))
    """

    heads: int
    groups: int
    width: int
    scale: float | None
    cap: float | None
    window: int | None
    dropout: float
    query_norm: Module | None
    key_norm: Module | None
    qkv: Linear
    query: Linear
    key: Linear
    value: Linear
    output: Linear

    def __init__(
        self,
        hidden: int,
        heads: int,
        groups: int | None = None,
        width: int | None = None,
        bias: bool = False,
        output_bias: bool | None = None,
        is_fused: bool = False,
        norm: Callable[[int], Module] | None = None,
        scale: float | None = None,
        cap: float | None = None,
        window: int | None = None,
        dropout: float = 0.0,
        dtype: DTypeLike = "float32",
    ) -> None:
        groups = heads if groups is None else groups
        if groups < 1 or heads % groups:
            raise ValueError(f"{groups} heads of keys and values do not divide {heads} heads of queries")
        if width is None and hidden % heads:
            raise ValueError(f"{heads} heads do not divide the hidden width {hidden}; say the width of a head")
        if window is not None and window < 1:
            raise ValueError(f"the window of an attention has at least 1 position, not {window}")
        self.heads, self.groups, self.width = heads, groups, hidden // heads if width is None else width
        self.scale, self.cap, self.window, self.dropout = scale, cap, window, dropout
        if is_fused:
            self.qkv = Linear(hidden, (heads + 2 * groups) * self.width, bias, dtype=dtype)
        else:
            self.query = Linear(hidden, heads * self.width, bias, dtype=dtype)
            self.key = Linear(hidden, groups * self.width, bias, dtype=dtype)
            self.value = Linear(hidden, groups * self.width, bias, dtype=dtype)
        self._is_fused = is_fused
        self.output = Linear(heads * self.width, hidden, bias if output_bias is None else output_bias, dtype=dtype)
        self.query_norm = None if norm is None else norm(self.width)
        self.key_norm = None if norm is None else norm(self.width)

    def initial_state(self, batch: int) -> KeyValueCache:
        """An empty cache."""
        empty = self.zeros(batch, 0, self.groups, self.width)
        return KeyValueCache(empty, empty)

    def remember(self, context: TensorLike) -> KeyValueCache:
        """Return the keys and values of another sequence, for calls that attend to that ``memory`` alone."""
        key, value = self.key(context), self.value(context)
        shape = (*key.shape[:2], self.groups, self.width)
        return KeyValueCache(ops.reshape(key, shape), ops.reshape(value, shape))

    def forward(
        self,
        x: TensorLike,
        mask: TensorLike | None = None,
        bias: TensorLike | None = None,
        rotation: Rotation | None = None,
        is_causal: bool = False,
        state: KeyValueCache | None = None,
        memory: KeyValueCache | None = None,
    ) -> Any:
        if memory is not None:
            query = self.query(x)
            query = ops.reshape(query, (*query.shape[:2], self.heads, self.width))
            found = self._attend(query, memory.key, memory.value, mask, bias, False)
            return self.output(ops.reshape(found, (*found.shape[:2], self.heads * self.width)))
        query, key, value = self._project(x)
        if self.query_norm is not None and self.key_norm is not None:
            query, key = self.query_norm(query), self.key_norm(key)
        if rotation is not None:
            query, key = rotate(query, rotation), rotate(key, rotation)
        if state is not None:
            key, value = ops.concatenate([state.key, key], 1), ops.concatenate([state.value, value], 1)
        found = self._attend(query, key, value, mask, bias, is_causal)
        found = self.output(ops.reshape(found, (*found.shape[:2], self.heads * self.width)))
        if state is None:
            return found
        if self.window is not None:  # the next query sees itself and window - 1 positions of the cache
            kept = slice(max(key.shape[1] - self.window + 1, 0), None)
            key, value = ops.get_item(key, (slice(None), kept)), ops.get_item(value, (slice(None), kept))
        return found, KeyValueCache(key, value)

    def _project(self, x: TensorLike) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries, keys and values, each (batch, length, heads, width)."""
        if self._is_fused:
            joined = self.qkv(x)
            joined = ops.reshape(joined, (*joined.shape[:2], self.heads + 2 * self.groups, self.width))
            ends = [0, self.heads, self.heads + self.groups, self.heads + 2 * self.groups]
            query, key, value = (
                ops.get_item(joined, (slice(None), slice(None), slice(first, last))) for first, last in pairwise(ends)
            )
            return query, key, value
        query, key, value = self.query(x), self.key(x), self.value(x)
        size = query.shape[:2]
        return (
            ops.reshape(query, (*size, self.heads, self.width)),
            ops.reshape(key, (*size, self.groups, self.width)),
            ops.reshape(value, (*size, self.groups, self.width)),
        )

    def _attend(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: TensorLike | None,
        bias: TensorLike | None,
        is_causal: bool,
    ) -> Tensor:
        is_dropping = bool(self.dropout) and self.training
        if is_causal and self.window is not None and key.shape[1] > self.window:
            mask, is_causal = causal_mask(query.shape[1], key.shape[1], self.window, ops.get_device(query))[0], False
        if self.cap is None and not is_dropping:
            return ops.dot_product_attention(query, key, value, bias, mask, self.scale, is_causal)
        if is_causal:
            past = ops.tri(
                query.shape[1],
                key.shape[1],
                key.shape[1] - query.shape[1],
                dtype="bool",
                device=ops.get_device(query),
            )
            mask = past if mask is None else ops.logical_and(mask, past)
        return self._attend_step_by_step(query, key, value, mask, bias, is_dropping)

    def _attend_step_by_step(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: TensorLike | None,
        bias: TensorLike | None,
        is_dropping: bool,
    ) -> Tensor:
        """Attention with capped scores or dropped weights, for which no library has a kernel that all agree on."""
        shared = self.heads // self.groups
        if shared > 1:
            key, value = ops.repeat(key, shared, axis=2), ops.repeat(value, shared, axis=2)
        query = ops.multiply(ops.transpose(query, (0, 2, 1, 3)), self.width**-0.5 if self.scale is None else self.scale)
        scores = ops.matmul(query, ops.transpose(key, (0, 2, 3, 1)))
        if self.cap is not None:
            scores = ops.multiply(ops.tanh(ops.divide(scores, self.cap)), self.cap)
        if bias is not None:
            scores = ops.add(scores, bias)
        if mask is not None:
            scores = ops.where(mask, scores, -math.inf)
            is_seen = ops.any(mask, -1, keepdims=True)  # a query that sees no key gets zeros
            weights = ops.where(is_seen, ops.softmax(ops.where(is_seen, scores, 0.0)), 0.0)
        else:
            weights = ops.softmax(scores)
        if is_dropping:
            weights = ops.dropout(weights, self.dropout)
        return ops.transpose(ops.matmul(weights, ops.transpose(value, (0, 2, 1, 3))), (0, 2, 1, 3))


def causal_mask(
    queries: int,
    keys: int,
    window: int | None = None,
    device: str | None = None,
    is_real: Tensor | None = None,
) -> tuple[Tensor | None, bool]:
    """Return the mask of an attention in which no query sees a later key, and whether ``is_causal`` does without one.

    The last query stands at the last key. ``window`` is the number of last positions that a query sees. ``is_real`` is
    (batch, keys), and false at padding.

    >>> from ember_ml import ops
    >>> from ember_ml.nn.layers.sequence_mixing.grouped_query import causal_mask
    >>> mask, is_causal = causal_mask(2, 4, window=2)
    >>> ops.to_numpy(mask).astype(int).tolist(), is_causal
    ([[0, 1, 1, 0], [0, 0, 1, 1]], False)
    >>> causal_mask(2, 4)
    (None, True)
    """
    is_windowed = window is not None and keys > window
    if not is_windowed and is_real is None:
        return None, queries > 1
    mask = ops.tri(queries, keys, keys - queries, dtype="bool", device=device)
    if is_windowed:
        older = ops.tri(queries, keys, keys - queries - (window or 0), dtype="bool", device=device)
        mask = ops.logical_and(mask, ops.logical_not(older))
    if is_real is not None:
        mask = ops.logical_and(mask, ops.expand_dims(is_real, (1, 2)))
    return mask, False
