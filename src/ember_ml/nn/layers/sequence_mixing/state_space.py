"""A state-space layer: linear recurrences, computed for all positions at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ember_ml import ops
from ember_ml.nn.layers.channel_mixing.linear import Linear
from ember_ml.nn.layers.sequence_mixing.base import SequenceMixingLayer
from ember_ml.typing import DeviceLike, DTypeLike, Tensor, TensorLike

__all__ = ["StateSpace"]


class StateSpace(SequenceMixingLayer):
    """A selective state space: ``h = exp(d A) h' + d B x`` and ``y = C h + D x`` for each channel; ``hidden`` wide.

    Each channel has ``states`` states that decay at their own rates ``A < 0``. The step ``d``, the input ``B`` and the
    output ``C`` depend on the position's input, so that the layer can choose what it keeps. All positions are computed
    at once, in about twice the logarithm of their number of steps (``ops.associative_scan``). The ``state`` is ``h``.

    Args:
        hidden: The width of input and result.
        states: The number of states of each channel.
        rank: The width from which the steps are computed; None: a sixteenth of ``hidden``.
        dtype: The dtype of the parameters.
        device: Where they are made; None: on the default device.

    >>> from ember_ml import nn, ops
    >>> layer = nn.StateSpace(8, states=4)
    >>> y, state = layer(ops.ones((2, 5, 8)), state=layer.initial_state(2))
    >>> ops.shape(y), ops.shape(state)
    ((2, 5, 8), (2, 8, 4))
    """

    hidden: int
    states: int
    rank: int
    select: Linear
    step: Linear

    def __init__(
        self,
        hidden: int,
        states: int = 16,
        rank: int | None = None,
        dtype: DTypeLike = "float32",
        device: DeviceLike | None = None,
    ) -> None:
        if hidden < 1 or states < 1 or (rank is not None and rank < 1):
            raise ValueError("StateSpace needs a hidden width, a number of states and a rank of at least 1")
        self.hidden, self.states = hidden, states
        self.rank = -(-hidden // 16) if rank is None else rank
        self.select = Linear(hidden, self.rank + 2 * states, bias=False, dtype=dtype, device=device)
        self.step = Linear(self.rank, hidden, dtype=dtype, device=device)
        self.step.bias = _init_steps((hidden,), dtype, device)
        self._device = device
        self.add_parameter("log_rate", (hidden, states), _init_rates, dtype)
        self.add_parameter("skip", (hidden,), "ones", dtype)

    def initial_state(self, batch: int) -> Tensor:
        """Zeros."""
        return self.zeros(batch, self.hidden, self.states)

    def forward(self, x: TensorLike, mask: TensorLike | None = None, state: Tensor | None = None) -> Any:
        x = self.sequences(x, mask)
        low, into, out = ops.split(self.select(x), (self.rank, self.rank + self.states), axis=-1)
        step = ops.softplus(self.step(low))
        decay = ops.exp(ops.negative(ops.multiply(ops.expand_dims(step, -1), ops.exp(self.log_rate))))
        drive = ops.multiply(ops.expand_dims(ops.multiply(step, x), -1), ops.expand_dims(into, -2))
        decay, found = ops.associative_scan(_compose, (decay, drive), axis=1)
        if state is not None:
            found = ops.add(found, ops.multiply(decay, ops.expand_dims(state, 1)))
        y = ops.squeeze(ops.matmul(found, ops.expand_dims(out, -1)), -1)
        y = ops.add(y, ops.multiply(x, self.skip))
        if state is None:
            return y
        return y, (found[:, -1] if found.shape[1] else state)


def _compose(first: tuple[Tensor, Tensor], second: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    """Compose two affine maps ``h -> decay * h + drive``, the first one first."""
    return ops.multiply(first[0], second[0]), ops.add(ops.multiply(second[0], first[1]), second[1])


def _init_rates(shape: Sequence[int], dtype: Any) -> Tensor:
    """Return logarithms of the rates 1, 2, 3 ... in every channel: memories of different lengths."""
    row = [math.log(1.0 + place) for place in range(shape[1])]
    return ops.array([row] * shape[0], dtype=dtype)


def _init_steps(shape: Sequence[int], dtype: Any, device: DeviceLike | None) -> Tensor:
    """Draw biases with which steps start between 0.001 and 0.1, log-uniformly."""
    drawn = ops.to_numpy(ops.random_uniform(shape, math.log(1e-3), math.log(1e-1))).tolist()
    return ops.array([math.log(math.expm1(math.exp(place))) for place in drawn], dtype=dtype, device=device)
