"""Activations that limit what they get, shrink it towards 0, or make it sum to 1."""

from __future__ import annotations

from ember_ml import ops
from ember_ml.nn.modules.activations.activation import Activation
from ember_ml.typing import Tensor, TensorLike

__all__ = ["HardShrink", "HardTanh", "LogSoftmax", "SoftShrink", "Softsign", "Sparsemax", "TanhShrink"]


class HardTanh(Activation):
    """The limit to the range from -1 to 1.

    >>> from ember_ml import ops
    >>> from ember_ml.nn.modules.activations import HardTanh
    >>> ops.to_numpy(HardTanh()([-3.0, 0.5, 2.0])).tolist()
    [-1.0, 0.5, 1.0]
    """

    def forward(self, x: TensorLike) -> Tensor:
        """``min(max(x, -1), 1)``."""
        return ops.hard_tanh(x)


class Softsign(Activation):
    """The slow way to -1 and 1: ``x / (1 + abs(x))``.

    >>> from ember_ml import ops
    >>> from ember_ml.nn.modules.activations import Softsign
    >>> ops.to_numpy(Softsign()([-1.0, 0.0, 3.0])).tolist()
    [-0.5, 0.0, 0.75]
    """

    def forward(self, x: TensorLike) -> Tensor:
        """``x / (1 + abs(x))``."""
        return ops.softsign(x)


class TanhShrink(Activation):
    """What the hyperbolic tangent takes away: ``x - tanh(x)``.

    >>> from ember_ml import ops
    >>> from ember_ml.nn.modules.activations import TanhShrink
    >>> ops.to_numpy(TanhShrink()([0.0, 100.0])).tolist()
    [0.0, 99.0]
    """

    def forward(self, x: TensorLike) -> Tensor:
        """``x - tanh(x)``."""
        return ops.tanh_shrink(x)


class HardShrink(Activation):
    """Numbers beyond a threshold as they are, 0 in place of the others.

    >>> from ember_ml import ops
    >>> from ember_ml.nn.modules.activations import HardShrink
    >>> ops.to_numpy(HardShrink()([-2.0, 0.5, 0.75])).tolist()
    [-2.0, 0.0, 0.75]
    """

    def __init__(self, threshold: float = 0.5) -> None:
        self.threshold = threshold

    def forward(self, x: TensorLike) -> Tensor:
        """``x`` where its absolute value exceeds the threshold, 0 elsewhere."""
        return ops.hard_shrink(x, self.threshold)


class SoftShrink(Activation):
    """Numbers moved towards 0 by a threshold, and no further.

    >>> from ember_ml import ops
    >>> from ember_ml.nn.modules.activations import SoftShrink
    >>> ops.to_numpy(SoftShrink()([-2.0, 0.5, 0.75])).tolist()
    [-1.5, 0.0, 0.25]
    """

    def __init__(self, threshold: float = 0.5) -> None:
        self.threshold = threshold

    def forward(self, x: TensorLike) -> Tensor:
        """``sign(x) * max(abs(x) - threshold, 0)``."""
        return ops.soft_shrink(x, self.threshold)


class LogSoftmax(Activation):
    """The logarithms of exponentials that sum to 1 along ``axis``.

    >>> from ember_ml import ops
    >>> from ember_ml.nn.modules.activations import LogSoftmax
    >>> [round(v, 4) for v in ops.to_numpy(LogSoftmax()([1.0, 1.0])).tolist()]
    [-0.6931, -0.6931]
    """

    def __init__(self, axis: int = -1) -> None:
        self.axis = axis

    def forward(self, x: TensorLike) -> Tensor:
        """``x - log(sum(exp(x)))`` along the axis."""
        return ops.log_softmax(x, self.axis)


class Sparsemax(Activation):
    """The nearest numbers that sum to 1 along ``axis``; those of low scores are exactly 0.

    >>> from ember_ml import ops
    >>> from ember_ml.nn.modules.activations import Sparsemax
    >>> ops.to_numpy(Sparsemax()([0.5, 0.0, -2.0])).tolist()
    [0.75, 0.25, 0.0]
    """

    def __init__(self, axis: int = -1) -> None:
        self.axis = axis

    def forward(self, x: TensorLike) -> Tensor:
        """``max(x - level, 0)`` with the level at which this sums to 1 along the axis."""
        return ops.sparsemax(x, self.axis)
