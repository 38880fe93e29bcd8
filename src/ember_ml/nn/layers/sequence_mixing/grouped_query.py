"""Grouped-query attention: several heads of queries share one head of keys and values (Ainslie et al., 2023)."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

from ember_ml import ops
from ember_ml.nn.layers.channel_mixing.linear import Linear
from ember_ml.nn.layers.sequence_mixing.base import SequenceMixingLayer
from ember_ml.nn.layers.sequence_mixing.heads import FixedCache, Heads, KeyValueCache, refuse_parts
from ember_ml.nn.layers.sequence_mixing.rotary import Rotation, rotate
from ember_ml.nn.modules.module import Module
from ember_ml.typing import DeviceLike, DTypeLike, Tensor, TensorLike

__all__ = ["GroupedQueryAttention"]


class GroupedQueryAttention(Heads, SequenceMixingLayer):
    """``softmax(Q K.T * scale) V`` with heads of any width, for models whose sizes are read from a file.

    It differs from :class:`nn.Attention` in that the caller makes the rotation and the mask, once for all layers of a
    model, that queries, keys and values can have linear maps of their own, and that it attends to a ``memory`` too.

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
        device: Where they are made; None: on the default device.

    >>> from ember_ml import nn, ops
    >>> layer = nn.GroupedQueryAttention(64, heads=8, groups=2, width=16, window=4)
    >>> y, cache = layer(ops.ones((2, 5, 64)), is_causal=True, state=layer.initial_state(2))
    >>> ops.shape(y), ops.shape(cache.key)
    ((2, 5, 64), (2, 3, 2, 16))
    """

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
        device: DeviceLike | None = None,
    ) -> None:
        super().__init__(hidden, heads, groups, width, scale, cap, window, dropout)
        if is_fused:
            self.qkv = Linear(hidden, (self.heads + 2 * self.groups) * self.width, bias, dtype=dtype, device=device)
        else:
            self.query = Linear(hidden, self.heads * self.width, bias, dtype=dtype, device=device)
            self.key = Linear(hidden, self.groups * self.width, bias, dtype=dtype, device=device)
            self.value = Linear(hidden, self.groups * self.width, bias, dtype=dtype, device=device)
        self._is_fused = is_fused
        self.output = Linear(
            self.heads * self.width, hidden, bias if output_bias is None else output_bias, dtype=dtype, device=device
        )
        self.query_norm = None if norm is None else norm(self.width)
        self.key_norm = None if norm is None else norm(self.width)

    def initial_state(self, batch: int) -> KeyValueCache:
        """An empty cache."""
        empty = self.zeros(batch, 0, self.groups, self.width)
        return KeyValueCache(empty, empty)

    def remember(self, context: TensorLike) -> KeyValueCache:
        """Return the keys and values of another sequence, for calls that attend to that ``memory`` alone."""
        return KeyValueCache(self._split_heads(self.key(context)), self._split_heads(self.value(context)))

    def forward(
        self,
        x: TensorLike,
        mask: TensorLike | None = None,
        bias: TensorLike | None = None,
        rotation: Rotation | None = None,
        is_causal: bool = False,
        state: KeyValueCache | FixedCache | None = None,
        memory: KeyValueCache | None = None,
    ) -> Any:
        if memory is not None:
            refuse_parts("memory")
            query = self._split_heads(self.query(x))
            return self.output(self.attend(query, memory.key, memory.value, bias, mask, False))
        query, key, value = self._project(x, state.joined if type(state) is FixedCache else None)
        if self.query_norm is not None and self.key_norm is not None:
            query, key = self.query_norm(query), self.key_norm(key)
        if rotation is not None:
            query, key = rotate(query, rotation), rotate(key, rotation)
        if state is not None:
            key, value, state = self.extend(state, key, value)
        found = self.output(self.attend(query, key, value, bias, mask, is_causal))
        return found if state is None else (found, state)

    def join_weights(self) -> Tensor | None:
        """Return the weights of queries, keys and values below each other, if those are three maps without biases."""
        if self._is_fused or any(type(part) is not Linear for part in (self.query, self.key, self.value)):
            return None
        if self.query.bias is not None:
            return None
        return ops.concatenate([self.query.weight, self.key.weight, self.value.weight])

    def _project(self, x: TensorLike, weights: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries, keys and values, each (batch, length, heads, width), by joined weights where there are."""
        if not self._is_fused and weights is None:
            return self._split_heads(self.query(x)), self._split_heads(self.key(x)), self._split_heads(self.value(x))
        joined = self.qkv(x) if weights is None else ops.linear(x, weights)
        heads, groups = self.count_heads(joined)
        joined = self._split_heads(joined)
        ends = [0, heads, heads + groups, heads + 2 * groups]
        query, key, value = (
            ops.get_item(joined, (slice(None), slice(None), slice(first, last))) for first, last in pairwise(ends)
        )
        return query, key, value

    def _split_heads(self, x: Tensor) -> Tensor:
        """Return (batch, length, heads, width) of heads beside each other."""
        return ops.reshape(x, (*x.shape[:2], x.shape[2] // self.width, self.width))
