"""The base class of layers that mix the channels of each position."""

from __future__ import annotations

from ember_ml import ops
from ember_ml.nn.layers.base import Layer
from ember_ml.typing import Tensor, TensorLike

__all__ = ["ChannelMixingLayer"]


class ChannelMixingLayer(Layer):
    """A layer over (..., channels) that treats every position alike; subclasses define ``forward``.

    >>> from ember_ml import nn, ops
    >>> class Double(nn.ChannelMixingLayer):
    ...     def forward(self, x):
    ...         return ops.multiply(super().forward(x), 2.0)
    >>> ops.to_numpy(Double()([[1.0, 2.0]])).tolist()
    [[2.0, 4.0]]
    """

    def forward(self, x: TensorLike) -> Tensor:
        """Return ``x`` as a tensor."""
        return ops.convert_to_tensor(x)
