"""Convolution that looks back only."""

from __future__ import annotations

from typing import Any

from ember_ml import ops
from ember_ml.nn import initializers
from ember_ml.nn.layers.sequence_mixing.base import SequenceMixingLayer, split_sizes
from ember_ml.typing import DeviceLike, DTypeLike, Tensor, TensorLike

__all__ = ["CausalConv1d"]


class CausalConv1d(SequenceMixingLayer):
    """``y[t] = sum_i weight[:, :, i] x[t - (kernel_size - 1 - i) * dilation_rate] + bias``: it looks back only.

    ``CausalConv1d(inputs, outputs, kernel_size)``, or ``CausalConv1d(outputs, kernel_size=3)``, which learns the number
    of inputs from the first call. As many ``groups`` as inputs make it depthwise. The weight has shape ``(outputs,
    inputs / groups, kernel_size)``. The ``state`` is the last ``(kernel_size - 1) * dilation_rate`` inputs.

    >>> from ember_ml import nn, ops
    >>> layer = nn.CausalConv1d(1, 1, kernel_size=2, bias=False).load_state_dict({"weight": [[[10.0, 1.0]]]})
    >>> ops.to_numpy(layer(ops.reshape(ops.array([1.0, 2.0, 3.0]), (1, 3, 1)))).ravel().tolist()
    [1.0, 12.0, 23.0]
    """

    inputs: int | None
    outputs: int
    kernel_size: int
    dilation_rate: int
    groups: int
    has_bias: bool
    bias: Tensor | None

    def __init__(
        self,
        inputs: int | None,
        outputs: int | None = None,
        kernel_size: int = 3,
        dilation_rate: int = 1,
        groups: int = 1,
        bias: bool = True,
        dtype: DTypeLike = "float32",
        device: DeviceLike | None = None,
    ) -> None:
        self.inputs, self.outputs = split_sizes("CausalConv1d", inputs, outputs)
        self.kernel_size, self.dilation_rate, self.groups = kernel_size, dilation_rate, groups
        if kernel_size < 1 or dilation_rate < 1 or groups < 1 or self.outputs % groups:
            raise ValueError(
                "CausalConv1d needs a kernel_size and a dilation_rate of at least 1, and groups that divide its outputs"
            )
        self.has_bias, self._dtype, self._device = bias, dtype, device
        if self.inputs is None:
            self.is_built = False
        else:
            self.build((self.inputs,))

    def build(self, shape: tuple[int, ...]) -> None:
        self.inputs = shape[-1]
        if self.inputs % self.groups:
            raise ValueError(f"{self.groups} groups of CausalConv1d do not divide its {self.inputs} inputs")
        each = self.inputs // self.groups
        limit = (each * self.kernel_size) ** -0.5
        draw = initializers.uniform(-limit, limit)
        self.add_parameter("weight", (self.outputs, each, self.kernel_size), draw, self._dtype)
        if self.has_bias:
            self.add_parameter("bias", (self.outputs,), draw, self._dtype)
        else:
            self.bias = None

    def initial_state(self, batch: int) -> Tensor:
        """Zeros in the places before the first."""
        return self.zeros(batch, (self.kernel_size - 1) * self.dilation_rate, self.inputs or 0)

    def forward(self, x: TensorLike, mask: TensorLike | None = None, state: Tensor | None = None) -> Any:
        x = self.sequences(x, mask)
        if state is not None:
            x = ops.concatenate([state, x], axis=1)
        kernel, padding = ops.transpose(self.weight, (2, 1, 0)), "causal" if state is None else "valid"
        y = ops.conv(x, kernel, padding=padding, dilation_rate=self.dilation_rate)
        if self.bias is not None:
            y = ops.add(y, self.bias)
        return y if state is None else (y, x[:, x.shape[1] - (self.kernel_size - 1) * self.dilation_rate :])
