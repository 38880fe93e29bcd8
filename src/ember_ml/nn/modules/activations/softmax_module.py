"""Softmax, the activation."""

from __future__ import annotations

from ember_ml import ops
from ember_ml.nn.modules.activations.activation import Activation
from ember_ml.typing import Tensor, TensorLike

__all__ = ["Softmax"]


class Softmax(Activation):
    """Exponentials that sum to 1 along ``axis``.

    >>> from ember_ml import ops
    >>> from ember_ml.nn.modules.activations import Softmax
    >>> ops.to_numpy(Softmax()([[1.0, 1.0]])).tolist()
    [[0.5, 0.5]]
    """

    def __init__(self, axis: int = -1) -> None:
        self.axis = axis

    def forward(self, x: TensorLike) -> Tensor:
        """Return ``exp(x) / sum(exp(x))`` along the axis."""
        return ops.softmax(x, axis=self.axis)
