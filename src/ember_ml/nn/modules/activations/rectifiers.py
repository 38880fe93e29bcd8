"""Activations that leave positive numbers alone, or nearly so."""

from __future__ import annotations

from ember_ml import ops
from ember_ml.nn.modules.activations.activation import Activation
from ember_ml.typing import Tensor, TensorLike

__all__ = ["CELU", "ELU", "SELU", "LeakyReLU", "PReLU", "ReLU6", "Squareplus", "Threshold"]


class ReLU6(Activation):
    """The rectifier that stops at 6: ``min(max(x, 0), 6)``.

    >>> from ember_ml import ops
    >>> from ember_ml.nn.modules.activations import ReLU6
    >>> ops.to_numpy(ReLU6()([-1.0, 2.0, 9.0])).tolist()
    [0.0, 2.0, 6.0]
    """

    def forward(self, x: TensorLike) -> Tensor:
        """``min(max(x, 0), 6)``."""
        return ops.relu6(x)


class LeakyReLU(Activation):
    """The rectifier with a small slope for negative numbers.

    >>> from ember_ml import ops
    >>> from ember_ml.nn.modules.activations import LeakyReLU
    >>> ops.to_numpy(LeakyReLU(negative_slope=0.25)([-4.0, 2.0])).tolist()
    [-1.0, 2.0]
    """

    def __init__(self, negative_slope: float = 0.2) -> None:
        self.negative_slope = negative_slope

    def forward(self, x: TensorLike) -> Tensor:
        """``max(x, 0) + negative_slope * min(x, 0)``."""
        return ops.leaky_relu(x, self.negative_slope)


class PReLU(Activation):
    """The rectifier whose slope for negative numbers is a weight: one for all, or one for each channel.

    >>> from ember_ml import ops
    >>> from ember_ml.nn.modules.activations import PReLU
    >>> ops.to_numpy(PReLU([0.25, 0.5])([[-4.0, -4.0], [2.0, 2.0]])).tolist()
    [[-1.0, -2.0], [2.0, 2.0]]
    """

    def __init__(self, weight: TensorLike = 0.25) -> None:
        self.weight = weight

    def forward(self, x: TensorLike) -> Tensor:
        """``max(x, 0) + weight * min(x, 0)``."""
        return ops.prelu(x, self.weight)


class ELU(Activation):
    """The rectifier that bends to ``-alpha`` for negative numbers.

    >>> from ember_ml import ops
    >>> from ember_ml.nn.modules.activations import ELU
    >>> ops.to_numpy(ELU(alpha=2.0)([3.0, float("-inf")])).tolist()
    [3.0, -2.0]
    """

    def __init__(self, alpha: float = 1.0) -> None:
        self.alpha = alpha

    def forward(self, x: TensorLike) -> Tensor:
        """``max(x, 0) + alpha * (exp(min(x, 0)) - 1)``."""
        return ops.elu(x, self.alpha)


class SELU(Activation):
    """ELU with the constants that keep the mean at 0 and the variance at 1 through layers.

    >>> from ember_ml import ops
    >>> from ember_ml.nn.modules.activations import SELU
    >>> [round(v, 4) for v in ops.to_numpy(SELU()([1.0, float("-inf")])).tolist()]
    [1.0507, -1.7581]
    """

    def forward(self, x: TensorLike) -> Tensor:
        """``scale * elu(x, alpha)``."""
        return ops.selu(x)


class CELU(Activation):
    """ELU without a step in its slope at 0, whatever ``alpha`` is.

    >>> from ember_ml import ops
    >>> from ember_ml.nn.modules.activations import CELU
    >>> ops.to_numpy(CELU(alpha=2.0)([3.0, float("-inf")])).tolist()
    [3.0, -2.0]
    """

    def __init__(self, alpha: float = 1.0) -> None:
        self.alpha = alpha

    def forward(self, x: TensorLike) -> Tensor:
        """``max(x, 0) + alpha * (exp(min(x, 0) / alpha) - 1)``."""
        return ops.celu(x, self.alpha)


class Squareplus(Activation):
    """The smooth rectifier that needs no exponential: ``(x + sqrt(x**2 + b)) / 2``.

    >>> from ember_ml import ops
    >>> from ember_ml.nn.modules.activations import Squareplus
    >>> ops.to_numpy(Squareplus()([0.0, 1.5, -1.5])).tolist()
    [1.0, 2.0, 0.5]
    """

    def __init__(self, b: float = 4.0) -> None:
        self.b = b

    def forward(self, x: TensorLike) -> Tensor:
        """``(x + sqrt(x**2 + b)) / 2``."""
        return ops.squareplus(x, self.b)


class Threshold(Activation):
    """Numbers above a threshold as they are, ``default_value`` in place of the others.

    >>> from ember_ml import ops
    >>> from ember_ml.nn.modules.activations import Threshold
    >>> ops.to_numpy(Threshold(0.5, 7.0)([-2.0, 0.5, 2.0])).tolist()
    [7.0, 7.0, 2.0]
    """

    def __init__(self, threshold: float, default_value: float) -> None:
        self.threshold = threshold
        self.default_value = default_value

    def forward(self, x: TensorLike) -> Tensor:
        """``x`` where it exceeds the threshold, ``default_value`` elsewhere."""
        return ops.threshold(x, self.threshold, self.default_value)
