"""Networks of two layers for each position alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ember_ml import ops
from ember_ml.config import registry
from ember_ml.nn.layers.base import Layer
from ember_ml.nn.layers.channel_mixing.dropout import Dropout
from ember_ml.nn.layers.channel_mixing.linear import Linear
from ember_ml.typing import DeviceLike, DTypeLike, Tensor, TensorLike

__all__ = ["GEGLU", "MLP", "GatedMLP", "SwiGLU"]


class MLP(Layer):
    """``down(activation(up(x)))``: two linear maps with an activation between them, over the last axis.

    It gives back the width that it got, unless ``outputs`` says otherwise. In training, ``dropout`` of the hidden
    numbers become 0.

    Args:
        hidden: The number of hidden neurons.
        outputs: The width of the result; None: that of the input.
        inputs: The width of the input; None or left out: that of the first input.
        activation: A name or function.
        bias: Whether the linear maps have biases.
        dropout: The share of elements that become 0 in training.
        dtype: The dtype of the parameters.
        device: Where they are made; None: on the default device.

    >>> from ember_ml import nn, ops
    >>> mixer = nn.layers.channel_mixing.MLP(64)
    >>> ops.shape(mixer(ops.ones((2, 5, 16))))
    (2, 5, 16)
    >>> list(mixer.named_parameters())
    ['up.weight', 'up.bias', 'down.weight', 'down.bias']
    """

    activation: Any
    down: Linear
    drop: Dropout
    has_bias: bool
    hidden: int
    up: Linear

    def __init__(
        self,
        hidden: int,
        outputs: int | None = None,
        inputs: int | None = None,
        activation: str | Callable[[Any], Any] = "gelu",
        bias: bool = True,
        dropout: float = 0.0,
        dtype: DTypeLike = "float32",
        device: DeviceLike | None = None,
    ) -> None:
        self.hidden, self.outputs, self.inputs = hidden, outputs, inputs
        self.has_bias, self._dtype, self._device = bias, dtype, device
        self.activation = registry.get("activations", activation)
        self.drop = Dropout(dropout)
        if inputs is None:
            self.is_built = False
        else:
            self.build((inputs,))

    def build(self, shape: tuple[int, ...]) -> None:
        self.inputs = shape[-1]
        self.outputs = self.inputs if self.outputs is None else self.outputs
        self.up = Linear(self.inputs, self.hidden, self.has_bias, dtype=self._dtype, device=self._device)
        self.down = Linear(self.hidden, self.outputs, self.has_bias, dtype=self._dtype, device=self._device)

    def forward(self, x: TensorLike) -> Tensor:
        hidden = self.activation(self.up(x))
        return self.down(self.drop(hidden) if self.drop.rate else hidden)


class GatedMLP(MLP):
    """``down(activation(gate(x)) * up(x))``: the hidden numbers have gates, over the last axis.

    The activation is that of the gates: with "sigmoid" this is the gated linear unit, GLU; :class:`SwiGLU` has "silu",
    :class:`GEGLU` "gelu". There are no biases unless asked for.

    The arguments are those of :class:`MLP`.

    >>> from ember_ml import nn, ops
    >>> ops.shape(nn.GatedMLP(64, activation="sigmoid")(ops.ones((2, 5, 16))))
    (2, 5, 16)
    """

    gate: Linear

    def __init__(
        self,
        hidden: int,
        outputs: int | None = None,
        inputs: int | None = None,
        activation: str | Callable[[Any], Any] = "silu",
        bias: bool = False,
        dropout: float = 0.0,
        dtype: DTypeLike = "float32",
        device: DeviceLike | None = None,
    ) -> None:
        super().__init__(hidden, outputs, inputs, activation, bias, dropout, dtype, device)

    def build(self, shape: tuple[int, ...]) -> None:
        self.gate = Linear(shape[-1], self.hidden, self.has_bias, dtype=self._dtype, device=self._device)
        super().build(shape)

    def forward(self, x: TensorLike) -> Tensor:
        hidden = ops.multiply(self.activation(self.gate(x)), self.up(x))
        return self.down(self.drop(hidden) if self.drop.rate else hidden)


class SwiGLU(GatedMLP):
    """A :class:`GatedMLP` whose gates are SiLU, as in Llama.

    >>> from ember_ml import nn, ops
    >>> ops.shape(nn.SwiGLU(64)(ops.ones((2, 5, 16))))
    (2, 5, 16)
    """


class GEGLU(GatedMLP):
    """A :class:`GatedMLP` whose gates are GELU.

    >>> from ember_ml import nn, ops
    >>> ops.shape(nn.GEGLU(64)(ops.ones((2, 5, 16))))
    (2, 5, 16)
    """

    def __init__(
        self,
        hidden: int,
        outputs: int | None = None,
        inputs: int | None = None,
        activation: str | Callable[[Any], Any] = "gelu",
        bias: bool = False,
        dropout: float = 0.0,
        dtype: DTypeLike = "float32",
        device: DeviceLike | None = None,
    ) -> None:
        super().__init__(hidden, outputs, inputs, activation, bias, dropout, dtype, device)
