"""Sigmoid, the activation."""

from __future__ import annotations

from ember_ml import ops
from ember_ml.nn.modules.activations.activation import Activation
from ember_ml.typing import Tensor, TensorLike

__all__ = ["Sigmoid"]


class Sigmoid(Activation):
    """The logistic function: ``1 / (1 + exp(-x))``.

    >>> from ember_ml import ops
    >>> from ember_ml.nn.modules.activations import Sigmoid
    >>> ops.to_numpy(Sigmoid()([0.0])).tolist()
    [0.5]
    """

    def forward(self, x: TensorLike) -> Tensor:
        """Return ``1 / (1 + exp(-x))``."""
        return ops.sigmoid(x)
