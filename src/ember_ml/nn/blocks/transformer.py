"""Transformers: residual blocks of attention and of a network for each position."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Unpack

from ember_ml import ops
from ember_ml.nn.layers.base import Layer
from ember_ml.nn.layers.channel_mixing import MLP, Dropout, GatedMLP, LayerNorm, RMSNorm
from ember_ml.nn.layers.sequence_mixing.attention import Attention, AttentionOptions, make_norm
from ember_ml.nn.layers.sequence_mixing.heads import KeyValueCache
from ember_ml.typing import DeviceLike, DTypeLike, Tensor, TensorLike

__all__ = ["BlockOptions", "Transformer", "TransformerBlock"]

_ORDERS = ("pre", "post", "parallel")


class BlockOptions(AttentionOptions, total=False):
    """The keyword arguments of :class:`TransformerBlock` that stacks of blocks pass on."""

    order: str
    epsilon: float
    attention_dropout: float | None


class TransformerBlock(Layer):
    """``x + attention(norm(x))``, then ``x + mlp(norm(x))``; ``hidden`` wide in and out.

    This is the ``order`` "pre", of GPT-2 and most models since. "post", that of the first transformers and of BERT, is
    ``norm(x + attention(x))``, then ``norm(x + mlp(x))``. "parallel", of GPT-J and PaLM, is ``x + attention(y) +
    mlp(y)`` with ``y = norm(x)``.

    Heads, groups, ``causal``, ``rotary``, ``bias`` of the attention, ``mask`` and ``state`` are those of
    :class:`nn.Attention`, and so are the keyword arguments ``base``, ``scaling``, ``width``, ``output_bias``,
    ``qk_norm``, ``scale``, ``cap`` and ``window``. The network has ``expansion * hidden`` neurons, with gates if
    ``gated``; its activation is GELU, that of gates SiLU, unless ``activation`` says otherwise. ``dropout`` is that of
    the weights of the attention, unless ``attention_dropout`` says otherwise, and of both results.

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
        device: Where they are made; None: on the default device.
        order: "pre", "post" or "parallel".
        epsilon: Added in the norms, against division by 0.
        attention_dropout: The share of weights of the attention that become 0 in training; None: ``dropout``.
        attention: Keyword arguments of :class:`nn.Attention` besides these, such as ``window`` or ``qk_norm``.

    >>> from ember_ml import nn, ops
    >>> block = nn.blocks.TransformerBlock(32, heads=4, causal=True)
    >>> ops.shape(block(ops.ones((2, 5, 32))))
    (2, 5, 32)
    >>> block = nn.blocks.TransformerBlock(32, heads=4, norm="rms", causal=True, rotary=True, qk_norm="rms", window=3)
    >>> ops.shape(block(ops.ones((2, 5, 32))))
    (2, 5, 32)
    """

    order: str
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
        device: DeviceLike | None = None,
        *,
        order: str = "pre",
        epsilon: float = 1e-5,
        attention_dropout: float | None = None,
        **attention: Unpack[AttentionOptions],
    ) -> None:
        if order not in _ORDERS:
            raise ValueError(f"the order of a transformer block is 'pre', 'post' or 'parallel', not {order!r}")
        self.order = order
        self.attention_norm = make_norm(norm, hidden, epsilon, dtype, device)
        self.attention = Attention(
            hidden,
            heads,
            groups,
            causal=causal,
            rotary=rotary,
            dropout=dropout if attention_dropout is None else attention_dropout,
            bias=bias,
            dtype=dtype,
            device=device,
            epsilon=epsilon,
            **attention,
        )
        if order != "parallel":
            self.mlp_norm = make_norm(norm, hidden, epsilon, dtype, device)
        kind, usual = (GatedMLP, "silu") if gated else (MLP, "gelu")
        chosen = usual if activation is None else activation
        inner = round(expansion * hidden)
        self.mlp = kind(inner, inputs=hidden, activation=chosen, bias=bias, dtype=dtype, device=device)
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
        order = self.order
        y = x if order == "post" else self.attention_norm(x)
        found = self.attention(y, mask, bias, state)
        if state is not None:
            found, state = found
        if self.drop.rate and self.training:
            found = self.drop(found)
        x = ops.add(x, found)
        if order == "pre":
            x = ops.add(x, self._mix_channels(self.mlp_norm(x)))
        elif order == "post":
            x = self.attention_norm(x)
            x = self.mlp_norm(ops.add(x, self._mix_channels(x)))
        else:
            x = ops.add(x, self._mix_channels(y))
        return x if state is None else (x, state)

    def _mix_channels(self, x: TensorLike) -> Tensor:
        found = self.mlp(x)
        return self.drop(found) if self.drop.rate and self.training else found


class Transformer(Layer):
    """``layers`` blocks one after another, and a normalization; the arguments are those of :class:`TransformerBlock`.

    In the order "post", where each block ends with a normalization, there is none after the last. Its ``state`` is a
    list with that of each block.

    Args:
        hidden: The width of input and result.
        layers: The number of blocks.
        block: Keyword arguments of :class:`TransformerBlock` besides those that are named here.

    >>> from ember_ml import nn, ops
    >>> encoder = nn.blocks.Transformer(32, layers=2, heads=4)
    >>> ops.shape(encoder(ops.ones((2, 5, 32))))
    (2, 5, 32)
    """

    blocks: list[TransformerBlock]
    norm: LayerNorm | RMSNorm | None

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
        device: DeviceLike | None = None,
        **block: Unpack[BlockOptions],
    ) -> None:
        if layers < 1:
            raise ValueError(f"Transformer has at least 1 layer, not {layers!r}")
        shared = (hidden, heads, groups, expansion, activation, gated, norm, causal, rotary, dropout, bias)
        self.blocks = [TransformerBlock(*shared, dtype, device, **block) for _ in range(layers)]
        is_normalized = block.get("order") == "post"
        self.norm = None if is_normalized else make_norm(norm, hidden, block.get("epsilon", 1e-5), dtype, device)

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
            return x if self.norm is None else self.norm(x)
        if len(state) != len(self.blocks):
            raise ValueError(f"the state has {len(state)} caches for the {len(self.blocks)} blocks of the Transformer")
        caches = []
        for block, cache in zip(self.blocks, state, strict=True):
            x, cache = block(x, mask, bias, cache)
            caches.append(cache)
        return (x if self.norm is None else self.norm(x)), caches
