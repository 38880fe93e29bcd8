"""The part that all attention layers share: heads, the cache, and the weighted averages of the values."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from ember_ml import ops
from ember_ml.backend.selection import active
from ember_ml.nn.layers.base import Layer
from ember_ml.nn.layers.sequence_mixing.sequence_parts import current_part
from ember_ml.typing import Tensor, TensorLike

__all__ = ["FixedCache", "Heads", "KeyValueCache", "causal_mask", "refuse_parts"]


class KeyValueCache(NamedTuple):
    """The keys and values of the positions seen so far, each (batch, length, groups, width of a head)."""

    key: Tensor
    value: Tensor
    dropped: int | None = None
    """The number of positions before them that a window has left behind; None: no window has."""

    @property
    def seen(self) -> int:
        """The number of positions so far."""
        return (self.dropped or 0) + self.key.shape[1]


class FixedCache(NamedTuple):
    """Keys and values in tensors of one length, (batch, size, groups, width of a head), for programs of one shape.

    What is not there yet holds any numbers: the mask of the caller hides it. Only backends with a compiler have it.
    """

    key: Tensor
    value: Tensor
    position: Tensor
    """Where the next keys and values go, one integer."""
    joined: Tensor | None = None
    """The weights of queries, keys and values below each other, where the layer has three maps without biases."""

    def replace(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, FixedCache]:
        """Return all keys and values with new ones at the position, in the memory of those before; and the cache."""
        engine = active().compilation
        assert engine is not None
        key = engine.replace_rows(self.key, 1, self.position, key)
        value = engine.replace_rows(self.value, 1, self.position, value)
        return key, value, FixedCache(key, value, self.position)


class Heads(Layer):
    """The base class of attention: sizes and number of heads, and what is done to the scores."""

    hidden: int
    heads: int
    groups: int
    width: int
    scale: float | None
    cap: float | None
    window: int | None
    dropout: float

    def __init__(
        self,
        hidden: int,
        heads: int | None,
        groups: int | None,
        width: int | None = None,
        scale: float | None = None,
        cap: float | None = None,
        window: int | None = None,
        dropout: float = 0.0,
    ) -> None:
        name = type(self).__name__
        heads = (hidden // 64 if hidden % 64 == 0 else 1) if heads is None else heads
        groups = heads if groups is None else groups
        if heads < 1 or (width is None and hidden % heads):
            raise ValueError(
                f"{heads} heads of {name} do not divide its hidden width {hidden}: say the width of a head"
            )
        if hidden < 1 or (width is not None and width < 1):
            wide = hidden if width is None else f"{hidden}, with heads of width {width}"
            raise ValueError(f"{name} and its heads are at least 1 wide, not {wide}")
        if groups < 1 or heads % groups:
            raise ValueError(f"{groups} groups of {name} do not divide its {heads} heads")
        if not 0.0 <= dropout < 1.0:
            raise ValueError(f"the dropout of {name} is a number from 0 to below 1, not {dropout!r}")
        if window is not None and window < 1:
            raise ValueError(f"the window of {name} has at least 1 position, not {window!r}")
        if cap is not None and not cap > 0:
            raise ValueError(f"the cap of {name} is a number above 0, not {cap!r}")
        self.hidden, self.heads, self.groups = hidden, heads, groups
        self.width = hidden // heads if width is None else width
        self.scale, self.cap, self.window, self.dropout = scale, cap, window, dropout

    def attend(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        bias: TensorLike | None,
        mask: TensorLike | None,
        is_causal: bool,
    ) -> Tensor:
        """Return the attention output with the heads concatenated: (batch, length, heads * width)."""
        part = current_part()
        if part is not None:
            key, value, bias, mask = part.gather_keys(key, value, bias, mask, is_causal)
        queries, keys = query.shape[1], key.shape[1]
        if is_causal and self.window is not None and keys > self.window:
            near, _ = causal_mask(queries, keys, self.window, ops.get_device(query))
            # not logical_and, which would take the numbers of a bias that is given as a mask
            mask, is_causal = near if mask is None else ops.where(near, mask, False), False
        if self.cap is not None or (self.dropout and self.training):
            found = self._attend_step_by_step(query, key, value, bias, mask, is_causal)
        elif queries == 1 and self.heads > self.groups and bias is None and _is_for_all_heads(mask):
            # one new token: the heads that share keys become queries of one head, for which libraries copy no keys
            shape = (query.shape[0], key.shape[2], self.heads // self.groups, self.width)
            rows = ops.transpose(ops.reshape(query, shape), (0, 2, 1, 3))
            found = ops.dot_product_attention(rows, key, value, None, mask, self.scale, False)
            found = ops.transpose(found, (0, 2, 1, 3))
        else:
            found = ops.dot_product_attention(query, key, value, bias, mask, self.scale, is_causal)
        return ops.reshape(found, (query.shape[0], queries, query.shape[2] * self.width))

    def count_heads(self, joined: Tensor) -> tuple[int, int]:
        """Return how many heads queries, and keys, have in what one linear map makes of both and of values.

        They are all heads of the layer, or an equal part of them where a process computes a part of the layer.
        """
        total = self.heads + 2 * self.groups
        found = joined.shape[-1] // self.width
        return self.heads * found // total, self.groups * found // total

    def _attend_step_by_step(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        bias: TensorLike | None,
        mask: TensorLike | None,
        is_causal: bool,
    ) -> Tensor:
        """Attention with capped scores or dropped weights: no library's own function drops the same ones."""
        queries, keys, shared = query.shape[1], key.shape[1], self.heads // self.groups
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
        if is_causal:
            past = ops.tri(queries, keys, keys - queries, dtype="bool", device=ops.get_device(scores))
            scores = ops.where(past, scores, -math.inf)
        if bias is not None or mask is not None or queries > keys:  # a query that sees no key gets zeros
            is_seen = ops.not_equal(scores, -math.inf)
            weights = ops.where(is_seen, ops.softmax(ops.where(ops.any(is_seen, -1, keepdims=True), scores, 0.0)), 0.0)
        else:
            weights = ops.softmax(scores)
        if self.dropout and self.training:
            weights = ops.dropout(weights, self.dropout)
        return ops.transpose(ops.matmul(weights, ops.transpose(value, (0, 2, 1, 3))), (0, 2, 1, 3))

    def extend(self, state: Any, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Any]:
        """Return the keys and values with those of the cache before them, and the cache after them."""
        refuse_parts("cache")
        if type(state) is FixedCache:
            return state.replace(key, value)
        key, value = ops.concatenate([state.key, key], 1), ops.concatenate([state.value, value], 1)
        # the next query sees itself and window - 1 positions of the cache
        extra = 0 if self.window is None else key.shape[1] - self.window + 1
        if extra <= 0:
            return key, value, KeyValueCache(key, value, state.dropped)
        kept = (slice(None), slice(extra, None))
        cache = KeyValueCache(ops.get_item(key, kept), ops.get_item(value, kept), (state.dropped or 0) + extra)
        return key, value, cache


def refuse_parts(what: str) -> None:
    """Raise where each process has a part of the sequence, with which an attention does not take ``what``."""
    if current_part() is not None:
        raise ValueError(f"an attention whose sequences are split over processes takes no {what}")


def _is_for_all_heads(mask: TensorLike | None) -> bool:
    """Whether a mask says the same for all heads and queries."""
    return mask is None or (len(ops.shape(mask)) == 4 and tuple(ops.shape(mask)[1:3]) == (1, 1))


def causal_mask(
    queries: int,
    keys: int,
    window: int | None = None,
    device: str | None = None,
    is_real: Tensor | None = None,
    later: int = 0,
) -> tuple[Tensor | None, bool]:
    """Return the mask of an attention in which no query sees a later key, and whether ``is_causal`` does without one.

    The last query stands at the last key, or has so many ``later`` ones behind it. ``window`` is the number of last
    positions that a query sees. ``is_real`` is (batch, keys), and false at padding.

    >>> from ember_ml import ops
    >>> from ember_ml.nn.layers.sequence_mixing.heads import causal_mask
    >>> mask, is_causal = causal_mask(2, 4, window=2)
    >>> ops.to_numpy(mask).astype(int).tolist(), is_causal
    ([[0, 1, 1, 0], [0, 0, 1, 1]], False)
    >>> causal_mask(2, 4)
    (None, True)
    """
    first = keys - later - queries
    is_windowed = window is not None and first + queries > window
    if not is_windowed and is_real is None:
        return None, queries > 1
    mask = ops.tri(queries, keys, first, dtype="bool", device=device)
    if is_windowed:
        older = ops.tri(queries, keys, first - (window or 0), dtype="bool", device=device)
        mask = ops.logical_and(mask, ops.logical_not(older))
    if is_real is not None:
        mask = ops.logical_and(mask, ops.expand_dims(is_real, (1, 2)))
    return mask, False
