"""Attention in linear time: products of features take the place of the softmax, so that sums over keys are shared."""

from __future__ import annotations

from typing import Any

from ember_ml import ops
from ember_ml.nn.layers.channel_mixing.linear import Linear
from ember_ml.nn.layers.sequence_mixing.base import SequenceMixingLayer
from ember_ml.typing import DeviceLike, DTypeLike, Tensor, TensorLike

__all__ = ["LinearAttention"]


class LinearAttention(SequenceMixingLayer):
    """``sum_j f(q) . f(k_j) v_j / sum_j f(q) . f(k_j)`` with ``f(x) = elu(x) + 1``; ``hidden`` wide in and out.

    Time and memory grow with the length, not with its square. With ``causal`` no position sees a later one: positions
    are then taken ``chunk`` at a time, whose products are computed as in attention, and what came before them is one
    matrix for each head; that matrix is also the ``state`` with which another call goes on. ``mask`` (batch, length, 1)
    is multiplied into the inputs and hides their keys.

    Args:
        hidden: The width of input and result.
        heads: The number of heads.
        causal: Whether no position sees a later one.
        chunk: The number of positions that are computed together.
        bias: Whether the projections have biases.
        dtype: The dtype of the parameters.
        device: Where they are made; None: on the default device.

    >>> from ember_ml import nn, ops
    >>> layer = nn.LinearAttention(32, heads=4, causal=True)
    >>> y, state = layer(ops.ones((2, 100, 32)), state=layer.initial_state(2))
    >>> ops.shape(y), ops.shape(state)
    ((2, 100, 32), (2, 4, 8, 9))
    """

    hidden: int
    heads: int
    causal: bool
    chunk: int
    qkv: Linear
    output: Linear

    def __init__(
        self,
        hidden: int,
        heads: int = 1,
        causal: bool = False,
        chunk: int = 64,
        bias: bool = True,
        dtype: DTypeLike = "float32",
        device: DeviceLike | None = None,
    ) -> None:
        if heads < 1 or hidden % heads:
            raise ValueError(f"{heads} heads of LinearAttention do not divide its hidden width {hidden}")
        if chunk < 1:
            raise ValueError(f"LinearAttention takes at least 1 position at a time, not {chunk!r}")
        self.hidden, self.heads, self.causal, self.chunk = hidden, heads, causal, chunk
        self.qkv = Linear(hidden, 3 * hidden, bias=bias, dtype=dtype, device=device)
        self.output = Linear(hidden, hidden, bias=bias, dtype=dtype, device=device)

    def initial_state(self, batch: int) -> Tensor:
        """Zeros: for each head the sum of ``f(k) v``, and in its last column that of ``f(k)``."""
        width = self.hidden // self.heads
        return self.zeros(batch, self.heads, width, width + 1)

    def forward(self, x: TensorLike, mask: TensorLike | None = None, state: Tensor | None = None) -> Any:
        if state is not None and not self.causal:
            raise ValueError("only a causal LinearAttention carries a state")
        x = self.sequences(x, mask)
        batch, length = x.shape[:2]
        parts = ops.reshape(self.qkv(x), (batch, length, 3, self.heads, self.hidden // self.heads))
        query, key, value = ops.unstack(ops.transpose(parts, (2, 0, 3, 1, 4)))
        query, key = _map_features(query), _map_features(key)
        if mask is not None:
            key = ops.multiply(key, ops.expand_dims(mask, 1))
        value = ops.concatenate([value, ops.ones_like(value[..., :1])], axis=-1)
        if self.causal and length:
            sums, state_after = self._causal_sums(query, key, value, state)
        else:
            sums, state_after = ops.matmul(query, ops.matmul(ops.swapaxes(key, -1, -2), value)), state
        found, total = ops.split(sums, (self.hidden // self.heads,), axis=-1)
        found = ops.divide(found, ops.where(ops.equal(total, 0.0), 1.0, total))  # 0 where all visible keys are masked
        y = self.output(ops.reshape(ops.transpose(found, (0, 2, 1, 3)), (batch, length, self.hidden)))
        return y if state is None else (y, state_after)

    def _causal_sums(self, query: Tensor, key: Tensor, value: Tensor, state: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return for each query the sum over the keys up to it, and the state after the last position."""
        batch, heads, length, width = query.shape
        size = min(self.chunk, length)
        count = -(-length // size)
        query, key, value = (
            ops.reshape(_pad_positions(x, count * size - length), (batch, heads, count, size, x.shape[-1]))
            for x in (query, key, value)
        )
        products = ops.matmul(query, ops.swapaxes(key, -1, -2))
        near = ops.tri(size, size, dtype=products.dtype, device=ops.get_device(products))
        sums = ops.matmul(ops.multiply(products, near), value)
        before = ops.zeros((batch, heads, width, value.shape[-1]), dtype=sums.dtype, device=ops.get_device(sums))
        before = before if state is None else state
        chunks = ops.matmul(ops.swapaxes(key, -1, -2), value)
        running = ops.cumsum(ops.concatenate([ops.expand_dims(before, 2), chunks], axis=2), axis=2)
        sums = ops.add(sums, ops.matmul(query, running[:, :, :-1]))
        sums = ops.reshape(sums, (batch, heads, count * size, value.shape[-1]))[:, :, :length]
        return sums, running[:, :, -1]


def _map_features(x: Tensor) -> Tensor:
    return ops.add(ops.elu(x), 1.0)


def _pad_positions(x: Tensor, missing: int) -> Tensor:
    """Pad the positions of ``x`` with ``missing`` zeros at the end."""
    return ops.pad(x, ((0, 0), (0, 0), (0, missing), (0, 0))) if missing else x
