"""Attention: each position takes from the others what its query finds in their keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict

from ember_ml import ops
from ember_ml.nn.layers.channel_mixing.linear import Linear
from ember_ml.nn.layers.channel_mixing.normalization import LayerNorm, RMSNorm
from ember_ml.nn.layers.sequence_mixing.base import SequenceMixingLayer
from ember_ml.nn.layers.sequence_mixing.heads import Heads, KeyValueCache, refuse_parts
from ember_ml.nn.layers.sequence_mixing.rotary import RotaryPositions
from ember_ml.nn.layers.sequence_mixing.sequence_parts import current_part
from ember_ml.typing import DeviceLike, DTypeLike, Tensor, TensorLike

__all__ = ["Attention", "AttentionOptions", "CrossAttention", "make_norm"]


class AttentionOptions(TypedDict, total=False):
    """The keyword arguments of :class:`Attention` that blocks pass on."""

    base: float
    scaling: Mapping[str, Any] | None
    width: int | None
    output_bias: bool | None
    qk_norm: str | None
    scale: float | None
    cap: float | None
    window: int | None


class Attention(Heads, SequenceMixingLayer):
    """``softmax(Q K.T / sqrt(d)) V`` of queries, keys and values of the same sequence; ``hidden`` wide in and out.

    There are ``heads`` heads, by default one for each 64 of ``hidden`` if that divides it, else one. Keys and values
    have ``groups`` heads, by default as many as the queries; each serves ``heads / groups`` neighbouring ones. With
    ``causal`` no position sees a later one, with ``rotary`` queries and keys are rotated by their position. ``dropout``
    leaves out weights in training.

    With a ``window`` each position sees only that many, its own and those before it, and the cache keeps no more.
    ``qk_norm`` normalizes the queries and keys of each head before they are rotated; ``cap`` keeps the scores between
    ``-cap`` and ``cap``.

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
        device: Where they are made; None: on the default device.
        scaling: What changes the frequencies of the rotation for longer texts, with the keys of ``config.json``:
            ``{"rope_type": "llama3", "factor": 8.0, "original_max_position_embeddings": 8192}``; the types are
            "default", "linear", "dynamic", "yarn", "longrope" and "llama3". None: nothing does.
        width: The width of a head; None: ``hidden / heads``.
        output_bias: Whether the result has a bias; None: as ``bias`` says.
        qk_norm: "rms" or "layer": the norm of queries and keys; None: none.
        epsilon: Added in that norm, against division by 0.
        scale: The factor of the scores; None: ``1 / sqrt(width)``.
        cap: Scores become ``cap * tanh(score / cap)``; None: they stay.
        window: The number of last positions that a position sees, its own included; None: all.

    >>> from ember_ml import nn, ops
    >>> layer = nn.Attention(64, heads=4, groups=2, causal=True, rotary=True)
    >>> y, cache = layer(ops.ones((2, 5, 64)), state=layer.initial_state(2))
    >>> ops.shape(y), ops.shape(cache.key)
    ((2, 5, 64), (2, 5, 2, 16))
    """

    causal: bool
    rotary: bool
    base: float
    scaling: Mapping[str, Any] | None
    qkv: Linear
    output: Linear
    query_norm: LayerNorm | RMSNorm | None
    key_norm: LayerNorm | RMSNorm | None

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
        device: DeviceLike | None = None,
        *,
        scaling: Mapping[str, Any] | None = None,
        width: int | None = None,
        output_bias: bool | None = None,
        qk_norm: str | None = None,
        epsilon: float = 1e-5,
        scale: float | None = None,
        cap: float | None = None,
        window: int | None = None,
    ) -> None:
        super().__init__(hidden, heads, groups, width, scale, cap, window, dropout)
        if window is not None and not causal:
            raise ValueError("the window of Attention looks back: it needs causal=True")
        if scaling is not None and not rotary:
            raise ValueError("the scaling of Attention is that of its rotation: it needs rotary=True")
        self.causal, self.rotary, self.base, self.scaling = causal, rotary, base, scaling
        if scaling is not None:
            self._scale_frequencies(1)  # so that a wrong scaling is told here
        self.qkv = Linear(hidden, (self.heads + 2 * self.groups) * self.width, bias=bias, dtype=dtype, device=device)
        has_bias = bias if output_bias is None else output_bias
        self.output = Linear(self.heads * self.width, hidden, bias=has_bias, dtype=dtype, device=device)
        self.query_norm = None if qk_norm is None else make_norm(qk_norm, self.width, epsilon, dtype, device)
        self.key_norm = None if qk_norm is None else make_norm(qk_norm, self.width, epsilon, dtype, device)

    def initial_state(self, batch: int) -> KeyValueCache:
        """Return an empty cache."""
        empty = self.zeros(batch, 0, self.groups, self.width)
        return KeyValueCache(empty, empty)

    def forward(
        self,
        x: TensorLike,
        mask: TensorLike | None = None,
        bias: TensorLike | None = None,
        state: KeyValueCache | None = None,
    ) -> Any:
        if state is not None and not self.causal:
            raise ValueError("only a causal Attention carries a state: others see what comes later")
        projected = self.qkv(x)
        if projected.ndim != 3:
            shape = tuple(ops.shape(x))
            raise ValueError(f"{type(self).__name__} takes x of shape (batch, length, {self.hidden}), not {shape}")
        heads, groups = self.count_heads(projected)
        turned = heads + groups
        batch, length, _ = projected.shape
        if self.rotary and self.query_norm is None:
            parts = ops.reshape(projected, (batch, length, turned + groups, self.width))
            both, value = ops.split(parts, (turned,), axis=2)
            query, key = ops.split(self._rotate(both, state), (heads,), axis=2)
        elif heads == groups:
            query, key, value = ops.unstack(ops.reshape(projected, (batch, length, 3, heads, self.width)), axis=2)
        else:
            parts = ops.reshape(projected, (batch, length, turned + groups, self.width))
            query, key, value = ops.split(parts, (heads, turned), axis=2)
        if self.query_norm is not None and self.key_norm is not None:
            query, key = self.query_norm(query), self.key_norm(key)
            if self.rotary:
                query, key = self._rotate(query, state), self._rotate(key, state)
        if state is not None:
            key, value, state = self.extend(state, key, value)
        is_causal = self.causal and query.shape[1] > 1  # one new position sees all of the cache
        y = self.output(self.attend(query, key, value, bias, mask, is_causal))
        return y if state is None else (y, state)

    def _rotate(self, x: Tensor, state: KeyValueCache | None) -> Tensor:
        """Rotate queries or keys by their positions, which go on from those of the state, or of the parts before."""
        part, length = current_part(), x.shape[1]
        seen = length * part.index if part is not None else 0 if state is None else state.seen
        if self.scaling is None:
            return ops.rotary_embedding(x, base=self.base, offset=seen)
        frequencies, factor = self._scale_frequencies(seen + length if part is None else length * part.count)
        turned = ops.rotary_embedding(x, offset=seen, frequencies=frequencies)
        return turned if factor == 1.0 else ops.multiply(turned, factor)

    def _scale_frequencies(self, length: int) -> tuple[list[float], float]:
        """Return the frequencies in a text of ``length`` positions, and the factor of the rotated vectors."""
        scaling = self.scaling or {}
        trained = scaling.get("original_max_position_embeddings", 2048)
        return RotaryPositions(self.width, self.base, scaling, trained).frequencies(length)


class CrossAttention(Heads):
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
        device: Where they are made; None: on the default device.

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
        device: DeviceLike | None = None,
    ) -> None:
        super().__init__(hidden, heads, groups, dropout=dropout)
        self.query = Linear(hidden, hidden, bias=bias, dtype=dtype, device=device)
        self.key_value = Linear(context, 2 * self.groups * self.width, bias=bias, dtype=dtype, device=device)
        self.output = Linear(hidden, hidden, bias=bias, dtype=dtype, device=device)

    def remember(self, context: TensorLike) -> KeyValueCache:
        """Return the keys and values of ``context``."""
        both = self.key_value(context)
        if both.ndim != 3:
            raise ValueError(f"a context has the shape (batch, length, width), not {tuple(ops.shape(context))}")
        parts = ops.reshape(both, (*both.shape[:2], both.shape[2] // self.width, self.width))
        key, value = ops.split(parts, 2, axis=2)
        return KeyValueCache(key, value)

    def forward(
        self,
        x: TensorLike,
        context: TensorLike | KeyValueCache,
        mask: TensorLike | None = None,
        bias: TensorLike | None = None,
    ) -> Tensor:
        refuse_parts("other sequence")
        cache = context if type(context) is KeyValueCache else self.remember(context)
        query = self.query(x)
        if query.ndim != 3:
            raise ValueError(f"CrossAttention takes x of shape (batch, length, {self.hidden}), not {ops.shape(x)}")
        query = ops.reshape(query, (*query.shape[:2], query.shape[2] // self.width, self.width))
        return self.output(self.attend(query, cache.key, cache.value, bias, mask, False))


_NORMS = {"layer": LayerNorm, "rms": RMSNorm}


def make_norm(
    kind: str, width: int, epsilon: float, dtype: DTypeLike, device: DeviceLike | None
) -> LayerNorm | RMSNorm:
    """Return a norm over the last axis, "layer" or "rms"."""
    if kind not in _NORMS:
        raise ValueError(f"the norm of a transformer is 'layer' or 'rms', not {kind!r}")
    return _NORMS[kind](width, epsilon, dtype=dtype, device=device)
