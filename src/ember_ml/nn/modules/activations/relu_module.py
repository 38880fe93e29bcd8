"""ReLU, the activation."""

from __future__ import annotations

from ember_ml import ops
from ember_ml.nn.modules.activations.activation import Activation
from ember_ml.typing import Tensor, TensorLike

__all__ = ["ReLU"]


class ReLU(Activation):
    """The rectifier: ``max(x, 0)``.

    >>> from ember_ml import ops
    >>> from ember_ml.nn.modules.activations import ReLU
    >>> ops.to_numpy(ReLU()([-1.0, 2.0])).tolist()
    [0.0, 2.0]
    """

    def forward(self, x: TensorLike) -> Tensor:
        """Return ``max(x, 0)``."""
        return ops.relu(x)
