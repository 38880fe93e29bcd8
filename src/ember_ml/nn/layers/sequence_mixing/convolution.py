"""Convolution that looks back only."""

from __future__ import annotations

from typing import Any

from ember_ml import ops
from ember_ml.nn import initializers
from ember_ml.nn.layers.sequence_mixing.base import SequenceMixingLayer
from ember_ml.typing import DTypeLike, Tensor, TensorLike

__all__ = ["CausalConvolution"]


class CausalConvolution(SequenceMixingLayer):
    """``y[t] = sum_i weight[i] x[t - (window - 1 - i) * dilation] + bias``: no result depends on what comes later.

    ``CausalConvolution(inputs, outputs, window)``; ``inputs`` None is the width of the first input. ``groups`` of
    channels are convolved by themselves: as many as ``inputs`` make it depthwise. The weight has the shape (window,
    inputs / groups, outputs). The ``state`` is the last ``(window - 1) * dilation`` inputs.

    >>> from ember_ml import nn, ops
    >>> layer = nn.CausalConvolution(1, 1, window=2, bias=False).load_state_dict({"weight": [[[10.0]], [[1.0]]]})
    >>> ops.to_numpy(layer(ops.reshape(ops.array([1.0, 2.0, 3.0]), (1, 3, 1)))).ravel().tolist()
    [1.0, 12.0, 23.0]
    """

    def __init__(
        self,
        inputs: int | None,
        outputs: int,
        window: int,
        dilation: int = 1,
        groups: int = 1,
        bias: bool = True,
        dtype: DTypeLike = "float32",
    ) -> None:
        if window < 1 or dilation < 1 or groups < 1 or outputs % groups:
            raise ValueError(
                "CausalConvolution needs a window and a dilation of at least 1, and groups that divide the outputs"
            )
        self.inputs, self.outputs, self.window, self.dilation, self.groups = inputs, outputs, window, dilation, groups
        self.has_bias, self._dtype = bias, dtype
        if inputs is None:
            self.is_built = False
        else:
            self.build((inputs,))

    def build(self, shape: tuple[int, ...]) -> None:
        self.inputs = shape[-1]
        if self.inputs % self.groups:
            raise ValueError(f"{self.groups} groups of CausalConvolution do not divide its {self.inputs} inputs")
        each = self.inputs // self.groups
        limit = (each * self.window) ** -0.5
        draw = initializers.uniform(-limit, limit)
        self.add_parameter("weight", (self.window, each, self.outputs), draw, self._dtype)
        if self.has_bias:
            self.add_parameter("bias", (self.outputs,), draw, self._dtype)
        else:
            self.bias = None

    def initial_state(self, batch: int) -> Tensor:
        """Zeros in the places before the first."""
        return self.zeros(batch, (self.window - 1) * self.dilation, self.inputs or 0)

    def forward(self, x: TensorLike, mask: TensorLike | None = None, state: Tensor | None = None) -> Any:
        x = self.sequences(x, mask)
        if state is not None:
            x = ops.concatenate([state, x], axis=1)
        padding = "causal" if state is None else "valid"
        y = ops.conv(x, self.weight, padding=padding, dilation_rate=self.dilation)
        if self.bias is not None:
            y = ops.add(y, self.bias)
        return y if state is None else (y, x[:, x.shape[1] - (self.window - 1) * self.dilation :])
