"""A layer in continuous time: its state changes with the time that passes between positions."""

from __future__ import annotations

from typing import Any

from ember_ml import ops
from ember_ml.nn import initializers
from ember_ml.nn.layers.sequence_mixing.base import SequenceMixingLayer, loop_over_time, split_sizes
from ember_ml.typing import DeviceLike, DTypeLike, Tensor, TensorLike

__all__ = ["CFC"]


class CFC(SequenceMixingLayer):
    """Closed-form continuous time (CfC, liquid): ``h = s tanh(p) + (1 - s) tanh(q)`` with ``s = sigmoid(b - a t)``.

    ``p``, ``q``, ``a`` and ``b`` are linear in ``backbone`` features of the input and of the state before it; ``t`` is
    the time since then. So the state moves from one value to the other as time passes, in the form that solves a liquid
    network's differential equation approximately. ``times`` (batch, length) are these times, all 1 by default; they
    need not be equal. ``CFC(inputs, hidden)``, or ``CFC(hidden)``, which takes the width of its first input. The
    ``state`` is ``h``.

    Args:
        inputs: The width of the input; None or left out: that of the first input.
        hidden: The width of the state.
        backbone: The number of features from which the parts are computed.
        dtype: The dtype of the parameters.
        device: Where they are made; None: on the default device.

    >>> from ember_ml import nn, ops
    >>> layer = nn.CFC(4, 8)
    >>> y, state = layer(ops.ones((2, 3, 4)), times=[[1.0, 0.5, 2.0], [0.1, 3.0, 1.0]], state=layer.initial_state(2))
    >>> ops.shape(y), ops.shape(state)
    ((2, 3, 8), (2, 8))
    """

    inputs: int | None
    hidden: int
    backbone: int

    def __init__(
        self,
        inputs: int | None,
        hidden: int | None = None,
        backbone: int = 128,
        dtype: DTypeLike = "float32",
        device: DeviceLike | None = None,
    ) -> None:
        self.inputs, self.hidden = split_sizes("CFC", inputs, hidden)
        if backbone < 1:
            raise ValueError(f"the backbone of CFC has at least 1 feature, not {backbone!r}")
        self.backbone, self._dtype, self._device = backbone, dtype, device
        if self.inputs is None:
            self.is_built = False
        else:
            self.build((self.inputs,))

    def build(self, shape: tuple[int, ...]) -> None:
        self.inputs = shape[-1]
        limit = (self.inputs + self.hidden) ** -0.5
        draw = initializers.uniform(-limit, limit)
        self.add_parameter("weight_ih", (self.backbone, self.inputs), draw, self._dtype)
        self.add_parameter("weight_hh", (self.backbone, self.hidden), draw, self._dtype)
        self.add_parameter("bias_ih", (self.backbone,), "zeros", self._dtype)
        self.add_parameter("weight_out", (4 * self.hidden, self.backbone), "glorot_uniform", self._dtype)
        self.add_parameter("bias_out", (4 * self.hidden,), "zeros", self._dtype)

    def initial_state(self, batch: int) -> Tensor:
        """Zeros."""
        return self.zeros(batch, self.hidden)

    def forward(
        self,
        x: TensorLike,
        mask: TensorLike | None = None,
        state: Tensor | None = None,
        times: TensorLike | None = None,
    ) -> Any:
        x = self.sequences(x, mask)
        projected = ops.linear(x, self.weight_ih, self.bias_ih)
        parts = (projected,)
        if times is not None:
            if tuple(ops.shape(times)) != tuple(x.shape[:2]):
                raise ValueError(f"times of CFC are (batch, length) = {tuple(x.shape[:2])}, not {ops.shape(times)}")
            parts = (projected, ops.expand_dims(ops.cast(times, projected.dtype), -1))
        recurrent, weight, bias = self.weight_hh, self.weight_out, self.bias_out

        def step(carry: Tensor, parts: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
            mixed = ops.add(parts[0], ops.linear(carry, recurrent))
            features = ops.multiply(ops.tanh(ops.multiply(mixed, 2.0 / 3.0)), 1.7159)  # LeCun's tanh
            p, q, a, b = ops.split(ops.linear(features, weight, bias), 4, axis=-1)
            passed = a if len(parts) == 1 else ops.multiply(a, parts[1])
            p, q = ops.tanh(p), ops.tanh(q)
            carry = ops.add(q, ops.multiply(ops.sigmoid(ops.subtract(b, passed)), ops.subtract(p, q)))
            return carry, carry

        zeros = ops.zeros((x.shape[0], self.hidden), dtype=projected.dtype, device=ops.get_device(projected))
        last, y = loop_over_time(step, zeros if state is None else state, parts)
        return y if state is None else (y, last)
