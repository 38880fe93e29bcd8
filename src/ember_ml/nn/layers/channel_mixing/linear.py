"""Linear maps of the channels."""

from __future__ import annotations

from typing import Any

from ember_ml import ops
from ember_ml.nn import initializers
from ember_ml.nn.initializers import Initializer
from ember_ml.nn.layers.base import Layer
from ember_ml.nn.modules.parameter import Held
from ember_ml.typing import DeviceLike, DTypeLike, Tensor, TensorLike

__all__ = ["Linear"]


class Linear(Layer):
    """``x @ weight.T + bias`` over the last axis: ``Linear(inputs, outputs)``, or ``Linear(outputs)``.

    The weight has shape ``(outputs, inputs)``, as in PyTorch and MLX. With one size the other is that of the first
    input.

    Args:
        inputs: The width of the input; None or left out: that of the first input.
        outputs: The width of the result.
        bias: Whether a bias is added.
        initializer: How the weight starts: a name or function of ``nn.initializers``.
        dtype: The dtype of the parameters.
        device: Where they are made; None: on the default device.

    >>> from ember_ml import nn, ops
    >>> ops.shape(nn.Linear(4)(ops.ones((2, 3))))
    (2, 4)
    """

    weight: Any = Held()
    bias: Any = Held()
    has_bias: bool

    def __init__(
        self,
        inputs: int | None,
        outputs: int | None = None,
        bias: bool = True,
        initializer: str | Initializer = "torch_uniform",
        dtype: DTypeLike = "float32",
        device: DeviceLike | None = None,
    ) -> None:
        self.inputs, wanted = (None, inputs) if outputs is None else (inputs, outputs)
        if wanted is None:
            raise TypeError("Linear needs its number of outputs: Linear(inputs, outputs) or Linear(outputs)")
        self.outputs: int = wanted
        self.has_bias, self._initializer, self._dtype, self._device = bias, initializer, dtype, device
        if self.inputs is None:
            self.is_built = False
        else:
            self.build((self.inputs,))

    def build(self, shape: tuple[int, ...]) -> None:
        self.inputs = inputs = shape[-1]
        self.add_parameter("weight", (self.outputs, inputs), self._initializer, self._dtype)
        if self.has_bias:
            limit = max(inputs, 1) ** -0.5
            self.add_parameter("bias", (self.outputs,), initializers.uniform(-limit, limit), self._dtype)
        else:
            self.bias = None

    def forward(self, x: TensorLike) -> Tensor:
        return ops.linear(x, self.weight, self.bias)
