"""The block of which MLP mixers are made."""

from __future__ import annotations

from typing import Any

from ember_ml import ops
from ember_ml.nn.layers.base import Layer
from ember_ml.nn.layers.channel_mixing.mlp import MLP
from ember_ml.nn.layers.channel_mixing.normalization import LayerNorm
from ember_ml.typing import DeviceLike, DTypeLike, Tensor, TensorLike

__all__ = ["MixerBlock"]


class MixerBlock(Layer):
    """Mixes the positions, then the channels of each position, of a tensor (batch, positions, channels).

    ``x + positions(norm(x).T).T``, then ``x + channels(norm(x))``, each an MLP with its number of hidden neurons. The
    number of positions is fixed by the first call.

    Args:
        position_hidden: The hidden neurons of the network over positions.
        channel_hidden: The hidden neurons of the network over channels.
        dropout: The share of elements that become 0 in training.
        dtype: The dtype of the parameters.
        device: Where they are made; None: on the default device.

    >>> from ember_ml import nn, ops
    >>> ops.shape(nn.blocks.MixerBlock(16, 32)(ops.ones((2, 9, 8))))
    (2, 9, 8)
    """

    channel_norm: Any
    channels: Any
    position_norm: Any
    positions: Any

    def __init__(
        self,
        position_hidden: int,
        channel_hidden: int,
        dropout: float = 0.0,
        dtype: DTypeLike = "float32",
        device: DeviceLike | None = None,
    ) -> None:
        self.position_norm = LayerNorm(dtype=dtype, device=device)
        self.positions = MLP(position_hidden, dropout=dropout, dtype=dtype, device=device)
        self.channel_norm = LayerNorm(dtype=dtype, device=device)
        self.channels = MLP(channel_hidden, dropout=dropout, dtype=dtype, device=device)
        self.is_built = False

    def build(self, shape: tuple[int, ...]) -> None:
        if len(shape) != 3:
            raise ValueError(f"MixerBlock takes (batch, positions, channels), not a tensor of shape {shape}")

    def forward(self, x: TensorLike) -> Tensor:
        mixed = self.positions(ops.matrix_transpose(self.position_norm(x)))
        x = ops.add(x, ops.matrix_transpose(mixed))
        return ops.add(x, self.channels(self.channel_norm(x)))
