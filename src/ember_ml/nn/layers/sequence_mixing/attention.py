"""Attention: each position takes from the others what its query finds in their keys."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from ember_ml import ops
from ember_ml.nn.layers.base import Layer
from ember_ml.nn.layers.channel_mixing.linear import Linear
from ember_ml.nn.layers.sequence_mixing.base import SequenceMixingLayer
from ember_ml.typing import DTypeLike, Tensor, TensorLike

__all__ = ["Attention", "CrossAttention", "KeyValueCache"]


class KeyValueCache(NamedTuple):
    """The keys and values of the positions seen so far, each (batch, length, groups, width of a head)."""

    key: Tensor
    value: Tensor


class _Heads(Layer):
    """The base class of attention: the split of ``hidden`` into heads, and the output projection."""

    hidden: int
    heads: int
    groups: int
    dropout: float

    def __init__(self, hidden: int, heads: int | None, groups: int | None, dropout: float) -> None:
        name = type(self).__name__
        heads = (hidden // 64 if hidden % 64 == 0 else 1) if heads is None else heads
        groups = heads if groups is None else groups
        if heads < 1 or hidden % heads:
            raise ValueError(f"{heads} heads of {name} do not divide its hidden width {hidden}")
        if groups < 1 or heads % groups:
            raise ValueError(f"{groups} groups of {name} do not divide its {heads} heads")
        if not 0.0 <= dropout < 1.0:
            raise ValueError(f"the dropout of {name} is a number from 0 to below 1, not {dropout!r}")
        self.hidden, self.heads, self.groups, self.dropout = hidden, heads, groups, dropout
        self._width = hidden // heads

    def attend(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        bias: TensorLike | None,
        mask: TensorLike | None,
        is_causal: bool,
    ) -> Tensor:
        """Return the attention output with the heads concatenated: (batch, length, hidden)."""
        if self.dropout and self.training:
            found = _attend_dropping(query, key, value, bias, mask, is_causal, self.dropout)
        else:
            found = ops.dot_product_attention(query, key, value, bias, mask, None, is_causal)
        return ops.reshape(found, (query.shape[0], query.shape[1], self.hidden))


class Attention(_Heads, SequenceMixingLayer):
    """``softmax(Q K.T / sqrt(d)) V`` of queries, keys and values of the same sequence; ``hidden`` wide in and out.

    There are ``heads`` heads, by default one for each 64 of ``hidden`` if that divides it, else one. Keys and values
    have ``groups`` heads, by default as many as the queries; each serves ``heads / groups`` neighbouring ones. With
    ``causal`` no position sees a later one, with ``rotary`` queries and keys are rotated by their position. ``dropout``
    leaves out weights in training.

    ``mask`` is true where a query sees a key, ``bias`` is added to their product; both broadcast to (batch, heads,
    queries, keys). With ``state``, a :class:`KeyValueCache`, the layer goes on where the last call stopped: positions
    also see those in the cache, and the result comes with the longer cache.

    Args:
        hidden: The width of input and result.
        heads: The number of heads.
        groups: The number of heads of keys and values.
        causal: Whether no position sees a later one.
        rotary: Whether queries and keys are rotated by their position.
        base: The base of the wavelengths of the rotation.
        dropout: The share of weights that become 0 in training.
        bias: Whether the projections have biases.
        dtype: The dtype of the parameters.

    >>> from ember_ml import nn, ops
    >>> layer = nn.Attention(64, heads=4, groups=2, causal=True, rotary=True)
    >>> y, cache = layer(ops.ones((2, 5, 64)), state=layer.initial_state(2))
    >>> ops.shape(y), ops.shape(cache.key)
    ((2, 5, 64), (2, 5, 2, 16))
    """

    causal: bool
    rotary: bool
    base: float
    qkv: Linear
    output: Linear

    def __init__(
        self,
        hidden: int,
        heads: int | None = None,
        groups: int | None = None,
        causal: bool = False,
        rotary: bool = False,
        base: float = 10000.0,
        dropout: float = 0.0,
        bias: bool = True,
        dtype: DTypeLike = "float32",
    ) -> None:
        super().__init__(hidden, heads, groups, dropout)
        self.causal, self.rotary, self.base = causal, rotary, base
        self.qkv = Linear(hidden, (self.heads + 2 * self.groups) * self._width, bias=bias, dtype=dtype)
        self.output = Linear(hidden, hidden, bias=bias, dtype=dtype)

    def initial_state(self, batch: int) -> KeyValueCache:
        """Return an empty cache."""
        empty = self.zeros(batch, 0, self.groups, self._width)
        return KeyValueCache(empty, empty)

    def forward(
        self,
        x: TensorLike,
        mask: TensorLike | None = None,
        bias: TensorLike | None = None,
        state: KeyValueCache | None = None,
    ) -> Any:
        projected = self.qkv(x)
        if projected.ndim != 3:
            shape = tuple(ops.shape(x))
            raise ValueError(f"{type(self).__name__} takes x of shape (batch, length, {self.hidden}), not {shape}")
        heads, rotated = self.heads, self.heads + self.groups
        parts = ops.reshape(projected, (*projected.shape[:2], rotated + self.groups, self._width))
        if self.rotary:
            both, value = ops.split(parts, (rotated,), axis=2)
            seen = 0 if state is None else state.key.shape[1]
            query, key = ops.split(ops.rotary_embedding(both, base=self.base, offset=seen), (heads,), axis=2)
        else:
            query, key, value = ops.split(parts, (heads, rotated), axis=2)
        if state is not None:
            key, value = ops.concatenate([state.key, key], axis=1), ops.concatenate([state.value, value], axis=1)
        is_causal = self.causal and query.shape[1] > 1  # one new position sees all of the cache
        y = self.output(self.attend(query, key, value, bias, mask, is_causal))
        return y if state is None else (y, KeyValueCache(key, value))


class CrossAttention(_Heads):
    """:class:`Attention` whose keys and values come from another sequence, the ``context``, of any width and length.

    A context that stays the same over many calls is projected once: ``remember`` gives a :class:`KeyValueCache`, which
    is passed in its place.

    Args:
        hidden: The width of queries and result.
        heads: The number of heads.
        groups: The number of heads of keys and values.
        dropout: The share of weights that become 0 in training.
        bias: Whether the projections have biases.
        context: The width of the context; None: that of the first one.
        dtype: The dtype of the parameters.

    >>> from ember_ml import nn, ops
    >>> layer = nn.CrossAttention(32, heads=4)
    >>> context = ops.ones((2, 7, 20))
    >>> ops.shape(layer(ops.ones((2, 5, 32)), context))
    (2, 5, 32)
    >>> remembered = layer.remember(context)
    >>> ops.shape(layer(ops.ones((2, 1, 32)), remembered))
    (2, 1, 32)
    """

    query: Linear
    key_value: Linear
    output: Linear

    def __init__(
        self,
        hidden: int,
        heads: int | None = None,
        groups: int | None = None,
        dropout: float = 0.0,
        bias: bool = True,
        context: int | None = None,
        dtype: DTypeLike = "float32",
    ) -> None:
        super().__init__(hidden, heads, groups, dropout)
        self.query = Linear(hidden, hidden, bias=bias, dtype=dtype)
        self.key_value = Linear(context, 2 * self.groups * self._width, bias=bias, dtype=dtype)
        self.output = Linear(hidden, hidden, bias=bias, dtype=dtype)

    def remember(self, context: TensorLike) -> KeyValueCache:
        """Return the keys and values of ``context``."""
        both = self.key_value(context)
        if both.ndim != 3:
            raise ValueError(f"a context has the shape (batch, length, width), not {tuple(ops.shape(context))}")
        parts = ops.reshape(both, (*both.shape[:2], 2 * self.groups, self._width))
        return KeyValueCache(*ops.split(parts, 2, axis=2))

    def forward(
        self,
        x: TensorLike,
        context: TensorLike | KeyValueCache,
        mask: TensorLike | None = None,
        bias: TensorLike | None = None,
    ) -> Tensor:
        key, value = context if type(context) is KeyValueCache else self.remember(context)
        query = self.query(x)
        if query.ndim != 3:
            raise ValueError(f"CrossAttention takes x of shape (batch, length, {self.hidden}), not {ops.shape(x)}")
        query = ops.reshape(query, (*query.shape[:2], self.heads, self._width))
        return self.output(self.attend(query, key, value, bias, mask, False))


def _attend_dropping(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    bias: TensorLike | None,
    mask: TensorLike | None,
    is_causal: bool,
    rate: float,
) -> Tensor:
    """Return ``ops.dot_product_attention`` with weights left out: no library's own function drops the same ones."""
    queries, keys, shared = query.shape[1], key.shape[1], query.shape[2] // key.shape[2]
    if shared > 1:
        key, value = ops.repeat(key, shared, axis=2), ops.repeat(value, shared, axis=2)
    query = ops.multiply(ops.transpose(query, (0, 2, 1, 3)), query.shape[3] ** -0.5)
    scores = ops.matmul(query, ops.transpose(key, (0, 2, 3, 1)))
    if bias is not None:
        scores = ops.add(scores, bias)
    if mask is not None:
        scores = ops.where(mask, scores, -math.inf)
    if is_causal:
        past = ops.tri(queries, keys, keys - queries, dtype="bool", device=ops.get_device(scores))
        scores = ops.where(past, scores, -math.inf)
    if bias is not None or mask is not None or queries > keys:  # a query that sees no key gets zeros
        is_seen = ops.greater(scores, -math.inf)
        weights = ops.where(is_seen, ops.softmax(ops.where(ops.any(is_seen, -1, keepdims=True), scores, 0.0)), 0.0)
    else:
        weights = ops.softmax(scores)
    found = ops.matmul(ops.dropout(weights, rate), ops.transpose(value, (0, 2, 1, 3)))
    return ops.transpose(found, (0, 2, 1, 3))
