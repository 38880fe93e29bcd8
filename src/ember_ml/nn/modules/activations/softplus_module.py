"""Softplus, the activation."""

from __future__ import annotations

from ember_ml import ops
from ember_ml.nn.modules.activations.activation import Activation
from ember_ml.typing import Tensor, TensorLike

__all__ = ["Softplus"]


class Softplus(Activation):
    """The smooth rectifier: ``log(1 + exp(x))``.

    >>> from ember_ml import ops
    >>> from ember_ml.nn.modules.activations import Softplus
    >>> [round(v, 4) for v in ops.to_numpy(Softplus()([0.0, 100.0])).tolist()]
    [0.6931, 100.0]
    """

    def forward(self, x: TensorLike) -> Tensor:
        """Return ``log(1 + exp(x))``."""
        return ops.softplus(x)
