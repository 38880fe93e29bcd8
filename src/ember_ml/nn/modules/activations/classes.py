"""Activation classes; those with a file of their own are ReLU, Sigmoid, Softmax, Softplus and Tanh."""

from __future__ import annotations

from ember_ml import ops
from ember_ml.nn.modules.activations.activation import Activation
from ember_ml.nn.modules.parameter import Parameter
from ember_ml.typing import Tensor, TensorLike

__all__ = [
    "CELU",
    "ELU",
    "GELU",
    "GLU",
    "SELU",
    "HardShrink",
    "HardSiLU",
    "HardSigmoid",
    "HardTanh",
    "LeakyReLU",
    "LogSigmoid",
    "LogSoftmax",
    "Mish",
    "PReLU",
    "ReLU6",
    "SiLU",
    "SoftShrink",
    "Softsign",
    "Sparsemax",
    "Squareplus",
    "TanhShrink",
    "Threshold",
]


class ReLU6(Activation):
    """The rectifier that stops at 6: ``min(max(x, 0), 6)``.

    >>> from ember_ml import ops
    >>> from ember_ml.nn.modules.activations import ReLU6
    >>> ops.to_numpy(ReLU6()([-1.0, 2.0, 9.0])).tolist()
    [0.0, 2.0, 6.0]
    """

    def forward(self, x: TensorLike) -> Tensor:
        """Return ``min(max(x, 0), 6)``."""
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
        """Return ``max(x, 0) + negative_slope * min(x, 0)``."""
        return ops.leaky_relu(x, self.negative_slope)


class PReLU(Activation):
    """The rectifier whose slope for negative numbers is a parameter: one for all, or one for each channel.

    >>> from ember_ml import ops
    >>> from ember_ml.nn.modules.activations import PReLU
    >>> ops.to_numpy(PReLU([0.25, 0.5])([[-4.0, -4.0], [2.0, 2.0]])).tolist()
    [[-1.0, -2.0], [2.0, 2.0]]
    """

    weight: Parameter

    def __init__(self, weight: TensorLike = 0.25) -> None:
        self.weight = Parameter(ops.multiply(weight, 1.0))  # whole numbers become float32

    def forward(self, x: TensorLike) -> Tensor:
        """Return ``max(x, 0) + weight * min(x, 0)``."""
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
        """Return ``max(x, 0) + alpha * (exp(min(x, 0)) - 1)``."""
        return ops.elu(x, self.alpha)


class SELU(Activation):
    """ELU with the constants that keep the mean at 0 and the variance at 1 through layers.

    >>> from ember_ml import ops
    >>> from ember_ml.nn.modules.activations import SELU
    >>> [round(v, 4) for v in ops.to_numpy(SELU()([1.0, float("-inf")])).tolist()]
    [1.0507, -1.7581]
    """

    def forward(self, x: TensorLike) -> Tensor:
        """Return ``scale * elu(x, alpha)``."""
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
        """Return ``max(x, 0) + alpha * (exp(min(x, 0) / alpha) - 1)``."""
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
        """Return ``(x + sqrt(x**2 + b)) / 2``."""
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
        """Return ``x`` where it exceeds the threshold, ``default_value`` elsewhere."""
        return ops.threshold(x, self.threshold, self.default_value)


class LogSigmoid(Activation):
    """The logarithm of the logistic function.

    >>> from ember_ml import ops
    >>> from ember_ml.nn.modules.activations import LogSigmoid
    >>> ops.to_numpy(LogSigmoid()([-1000.0])).tolist()
    [-1000.0]
    """

    def forward(self, x: TensorLike) -> Tensor:
        """Return ``-log(1 + exp(-x))``."""
        return ops.log_sigmoid(x)


class HardSigmoid(Activation):
    """The logistic function as a straight line from -3 to 3.

    >>> from ember_ml import ops
    >>> from ember_ml.nn.modules.activations import HardSigmoid
    >>> ops.to_numpy(HardSigmoid()([-4.0, 0.0, 1.5, 4.0])).tolist()
    [0.0, 0.5, 0.75, 1.0]
    """

    def forward(self, x: TensorLike) -> Tensor:
        """Return ``min(max(x + 3, 0), 6) / 6``."""
        return ops.hard_sigmoid(x)


class SiLU(Activation):
    """The logistic function as the gate of its own argument, also known as swish.

    >>> from ember_ml import ops
    >>> from ember_ml.nn.modules.activations import SiLU
    >>> ops.to_numpy(SiLU()([0.0, 100.0])).tolist()
    [0.0, 100.0]
    """

    def forward(self, x: TensorLike) -> Tensor:
        """Return ``x * sigmoid(x)``."""
        return ops.silu(x)


class HardSiLU(Activation):
    """SiLU with a straight line in place of the logistic function.

    >>> from ember_ml import ops
    >>> from ember_ml.nn.modules.activations import HardSiLU
    >>> ops.to_numpy(HardSiLU()([0.0, 1.5, 4.0])).tolist()
    [0.0, 1.125, 4.0]
    """

    def forward(self, x: TensorLike) -> Tensor:
        """Return ``x * hard_sigmoid(x)``."""
        return ops.hard_silu(x)


class GELU(Activation):
    """The normal distribution function as the gate of its own argument; approximate unless asked otherwise.

    >>> from ember_ml import ops
    >>> from ember_ml.nn.modules.activations import GELU
    >>> [round(v, 4) for v in ops.to_numpy(GELU(approximate=False)([-1.0, 2.0])).tolist()]
    [-0.1587, 1.9545]
    """

    def __init__(self, approximate: bool = True) -> None:
        self.approximate = approximate

    def forward(self, x: TensorLike) -> Tensor:
        """Return ``x`` times the probability that a standard normal number is below it."""
        return ops.gelu(x, self.approximate)


class Mish(Activation):
    """The hyperbolic tangent of softplus as the gate of its argument.

    >>> from ember_ml import ops
    >>> from ember_ml.nn.modules.activations import Mish
    >>> ops.to_numpy(Mish()([0.0, 100.0])).tolist()
    [0.0, 100.0]
    """

    def forward(self, x: TensorLike) -> Tensor:
        """Return ``x * tanh(softplus(x))``."""
        return ops.mish(x)


class GLU(Activation):
    """The second half along ``axis`` as the gate of the first.

    >>> from ember_ml import ops
    >>> from ember_ml.nn.modules.activations import GLU
    >>> ops.to_numpy(GLU()([4.0, 6.0, 0.0, 0.0])).tolist()
    [2.0, 3.0]
    """

    def __init__(self, axis: int = -1) -> None:
        self.axis = axis

    def forward(self, x: TensorLike) -> Tensor:
        """Return the first half times the sigmoid of the second."""
        return ops.glu(x, self.axis)


class HardTanh(Activation):
    """The limit to the range from -1 to 1.

    >>> from ember_ml import ops
    >>> from ember_ml.nn.modules.activations import HardTanh
    >>> ops.to_numpy(HardTanh()([-3.0, 0.5, 2.0])).tolist()
    [-1.0, 0.5, 1.0]
    """

    def forward(self, x: TensorLike) -> Tensor:
        """Return ``min(max(x, -1), 1)``."""
        return ops.hard_tanh(x)


class Softsign(Activation):
    """The slow way to -1 and 1: ``x / (1 + abs(x))``.

    >>> from ember_ml import ops
    >>> from ember_ml.nn.modules.activations import Softsign
    >>> ops.to_numpy(Softsign()([-1.0, 0.0, 3.0])).tolist()
    [-0.5, 0.0, 0.75]
    """

    def forward(self, x: TensorLike) -> Tensor:
        """Return ``x / (1 + abs(x))``."""
        return ops.softsign(x)


class TanhShrink(Activation):
    """What the hyperbolic tangent takes away: ``x - tanh(x)``.

    >>> from ember_ml import ops
    >>> from ember_ml.nn.modules.activations import TanhShrink
    >>> ops.to_numpy(TanhShrink()([0.0, 100.0])).tolist()
    [0.0, 99.0]
    """

    def forward(self, x: TensorLike) -> Tensor:
        """Return ``x - tanh(x)``."""
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
        """Return ``x`` where its absolute value exceeds the threshold, 0 elsewhere."""
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
        """Return ``sign(x) * max(abs(x) - threshold, 0)``."""
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
        """Return ``x - log(sum(exp(x)))`` along the axis."""
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
        """Return ``max(x - level, 0)`` with the level at which this sums to 1 along the axis."""
        return ops.sparsemax(x, self.axis)
