"""Transformers: residual blocks of attention and of a network for each position."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ember_ml import ops
from ember_ml.nn.layers.base import Layer
from ember_ml.nn.layers.channel_mixing import MLP, Dropout, GatedMLP, LayerNorm, RMSNorm
from ember_ml.nn.layers.sequence_mixing.attention import Attention, KeyValueCache
from ember_ml.typing import DTypeLike, TensorLike

__all__ = ["Transformer", "TransformerBlock"]

_NORMS = {"layer": LayerNorm, "rms": RMSNorm}


class TransformerBlock(Layer):
    """``x + attention(norm(x))``, then ``x + mlp(norm(x))``; ``hidden`` wide in and out.

    Heads, groups, ``causal``, ``rotary``, ``bias`` of the attention, ``mask`` and ``state`` are those of
    :class:`nn.Attention`. The network has ``expansion * hidden`` neurons, with gates if ``gated``; its activation is
    GELU, that of gates SiLU, unless ``activation`` says otherwise. ``norm`` is "layer" or "rms". ``dropout`` is that of
    the weights of the attention and of both results.

    Args:
        hidden: The width of input and result.
        heads: The number of heads.
        groups: The number of heads of keys and values.
        expansion: The hidden width of the network, as a multiple of ``hidden``.
        activation: A name or function; by default GELU, or SiLU for gates.
        gated: Whether the network has gates.
        norm: "layer" or "rms".
        causal: Whether no position sees a later one.
        rotary: Whether queries and keys are rotated by their position.
        dropout: The share of elements that become 0 in training.
        bias: Whether the linear maps have biases.
        dtype: The dtype of the parameters.

    >>> from ember_ml import nn, ops
    >>> block = nn.blocks.TransformerBlock(32, heads=4, causal=True)
    >>> ops.shape(block(ops.ones((2, 5, 32))))
    (2, 5, 32)
    """

    attention_norm: LayerNorm | RMSNorm
    attention: Attention
    mlp_norm: LayerNorm | RMSNorm
    mlp: MLP
    drop: Dropout

    def __init__(
        self,
        hidden: int,
        heads: int | None = None,
        groups: int | None = None,
        expansion: float = 4.0,
        activation: str | Callable[[Any], Any] | None = None,
        gated: bool = False,
        norm: str = "layer",
        causal: bool = False,
        rotary: bool = False,
        dropout: float = 0.0,
        bias: bool = True,
        dtype: DTypeLike = "float32",
    ) -> None:
        self.attention_norm = _make_norm(norm, hidden, dtype)
        self.attention = Attention(
            hidden, heads, groups, causal=causal, rotary=rotary, dropout=dropout, bias=bias, dtype=dtype
        )
        self.mlp_norm = _make_norm(norm, hidden, dtype)
        kind, usual = (GatedMLP, "silu") if gated else (MLP, "gelu")
        chosen = usual if activation is None else activation
        self.mlp = kind(round(expansion * hidden), inputs=hidden, activation=chosen, bias=bias, dtype=dtype)
        self.drop = Dropout(dropout)

    def initial_state(self, batch: int) -> KeyValueCache:
        """Return an empty cache."""
        return self.attention.initial_state(batch)

    def forward(
        self,
        x: TensorLike,
        mask: TensorLike | None = None,
        bias: TensorLike | None = None,
        state: KeyValueCache | None = None,
    ) -> Any:
        found = self.attention(self.attention_norm(x), mask, bias, state)
        if state is not None:
            found, state = found
        if not (self.drop.rate and self.training):
            x = ops.add(x, found)
            x = ops.add(x, self.mlp(self.mlp_norm(x)))
        else:
            x = ops.add(x, self.drop(found))
            x = ops.add(x, self.drop(self.mlp(self.mlp_norm(x))))
        return x if state is None else (x, state)


class Transformer(Layer):
    """``layers`` blocks one after another, and a normalization; the arguments are those of :class:`TransformerBlock`.

    Its ``state`` is a list with that of each block.

    >>> from ember_ml import nn, ops
    >>> encoder = nn.blocks.Transformer(32, layers=2, heads=4)
    >>> ops.shape(encoder(ops.ones((2, 5, 32))))
    (2, 5, 32)
    """

    blocks: list[TransformerBlock]
    norm: LayerNorm | RMSNorm

    def __init__(
        self,
        hidden: int,
        layers: int,
        heads: int | None = None,
        groups: int | None = None,
        expansion: float = 4.0,
        activation: str | Callable[[Any], Any] | None = None,
        gated: bool = False,
        norm: str = "layer",
        causal: bool = False,
        rotary: bool = False,
        dropout: float = 0.0,
        bias: bool = True,
        dtype: DTypeLike = "float32",
    ) -> None:
        if layers < 1:
            raise ValueError(f"Transformer has at least 1 layer, not {layers!r}")
        shared = (hidden, heads, groups, expansion, activation, gated, norm, causal, rotary, dropout, bias, dtype)
        self.blocks = [TransformerBlock(*shared) for _ in range(layers)]
        self.norm = _make_norm(norm, hidden, dtype)

    def initial_state(self, batch: int) -> list[KeyValueCache]:
        """Empty caches."""
        return [block.initial_state(batch) for block in self.blocks]

    def forward(
        self,
        x: TensorLike,
        mask: TensorLike | None = None,
        bias: TensorLike | None = None,
        state: Sequence[KeyValueCache] | None = None,
    ) -> Any:
        if state is None:
            for block in self.blocks:
                x = block(x, mask, bias)
            return self.norm(x)
        if len(state) != len(self.blocks):
            raise ValueError(f"the state has {len(state)} caches for the {len(self.blocks)} blocks of the Transformer")
        caches = []
        for block, cache in zip(self.blocks, state, strict=True):
            x, cache = block(x, mask, bias, cache)
            caches.append(cache)
        return self.norm(x), caches


def _make_norm(kind: str, hidden: int, dtype: DTypeLike) -> Any:
    if kind not in _NORMS:
        raise ValueError(f"the norm of a transformer is 'layer' or 'rms', not {kind!r}")
    return _NORMS[kind](hidden, dtype=dtype)
