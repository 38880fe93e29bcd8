"""Tanh, the activation."""

from __future__ import annotations

from ember_ml import ops
from ember_ml.nn.modules.activations.activation import Activation
from ember_ml.typing import Tensor, TensorLike

__all__ = ["Tanh"]


class Tanh(Activation):
    """The hyperbolic tangent.

    >>> from ember_ml import ops
    >>> from ember_ml.nn.modules.activations import Tanh
    >>> ops.to_numpy(Tanh()([0.0])).tolist()
    [0.0]
    """

    def forward(self, x: TensorLike) -> Tensor:
        """Return ``tanh(x)``."""
        return ops.tanh(x)
