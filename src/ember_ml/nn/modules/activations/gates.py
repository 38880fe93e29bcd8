"""Activations that let through a part of what they get, between none and all of it."""

from __future__ import annotations

from ember_ml import ops
from ember_ml.nn.modules.activations.activation import Activation
from ember_ml.typing import Tensor, TensorLike

__all__ = ["GELU", "GLU", "HardSiLU", "HardSigmoid", "LogSigmoid", "Mish", "SiLU"]


class LogSigmoid(Activation):
    """The logarithm of the logistic function.

    >>> from ember_ml import ops
    >>> from ember_ml.nn.modules.activations import LogSigmoid
    >>> ops.to_numpy(LogSigmoid()([-1000.0])).tolist()
    [-1000.0]
    """

    def forward(self, x: TensorLike) -> Tensor:
        """``-log(1 + exp(-x))``."""
        return ops.log_sigmoid(x)


class HardSigmoid(Activation):
    """The logistic function as a straight line from -3 to 3.

    >>> from ember_ml import ops
    >>> from ember_ml.nn.modules.activations import HardSigmoid
    >>> ops.to_numpy(HardSigmoid()([-4.0, 0.0, 1.5, 4.0])).tolist()
    [0.0, 0.5, 0.75, 1.0]
    """

    def forward(self, x: TensorLike) -> Tensor:
        """``min(max(x + 3, 0), 6) / 6``."""
        return ops.hard_sigmoid(x)


class SiLU(Activation):
    """The logistic function as the gate of its own argument, also known as swish.

    >>> from ember_ml import ops
    >>> from ember_ml.nn.modules.activations import SiLU
    >>> ops.to_numpy(SiLU()([0.0, 100.0])).tolist()
    [0.0, 100.0]
    """

    def forward(self, x: TensorLike) -> Tensor:
        """``x * sigmoid(x)``."""
        return ops.silu(x)


class HardSiLU(Activation):
    """SiLU with a straight line in place of the logistic function.

    >>> from ember_ml import ops
    >>> from ember_ml.nn.modules.activations import HardSiLU
    >>> ops.to_numpy(HardSiLU()([0.0, 1.5, 4.0])).tolist()
    [0.0, 1.125, 4.0]
    """

    def forward(self, x: TensorLike) -> Tensor:
        """``x * hard_sigmoid(x)``."""
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
        """``x`` times the chance that a standard normal number is below it."""
        return ops.gelu(x, self.approximate)


class Mish(Activation):
    """The hyperbolic tangent of softplus as the gate of its argument.

    >>> from ember_ml import ops
    >>> from ember_ml.nn.modules.activations import Mish
    >>> ops.to_numpy(Mish()([0.0, 100.0])).tolist()
    [0.0, 100.0]
    """

    def forward(self, x: TensorLike) -> Tensor:
        """``x * tanh(softplus(x))``."""
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
        """The first half times the sigmoid of the second."""
        return ops.glu(x, self.axis)
