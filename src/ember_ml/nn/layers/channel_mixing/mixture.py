"""Mixtures of experts: many networks, of which each position uses a few."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ember_ml import ops
from ember_ml.backend.selection import active
from ember_ml.config import registry
from ember_ml.nn import initializers
from ember_ml.nn.layers.base import Layer
from ember_ml.nn.modules.parameter import Buffer
from ember_ml.tensor import EmberTensor
from ember_ml.tensor.variable import settle
from ember_ml.typing import DeviceLike, DTypeLike, Tensor, TensorLike

__all__ = ["MixtureOfExperts"]


class MixtureOfExperts(Layer):
    """``experts`` gated networks, of which each position goes through the ``top_k`` that its router rates highest.

    The results are added up, weighted by the router's probabilities, which are scaled to add up to 1 unless
    ``is_normalized`` is False. No position is dropped, and each expert computes its own positions only. The buffer
    ``balance_loss`` is that of the last call: 1 where all experts have equal shares of the positions and of the
    probabilities, and more where some have too much. Added to the loss, times 0.01 or so, in the function that is
    differentiated, it keeps all experts busy.

    Args:
        experts: The number of networks.
        hidden: The hidden width of each network.
        top_k: The number of networks that each position goes through.
        inputs: The width of the input; None or left out: that of the first input.
        activation: The activation of the gates: a name or function.
        dtype: The dtype of the parameters.
        device: Where they are made; None: on the default device.
        is_normalized: Whether the probabilities of the chosen networks are scaled to add up to 1.

    >>> from ember_ml import nn, ops
    >>> mixture = nn.MixtureOfExperts(experts=4, hidden=32, top_k=2)
    >>> ops.shape(mixture(ops.ones((2, 5, 16))))
    (2, 5, 16)
    >>> ops.item(mixture.balance_loss) >= 0.99
    True
    """

    activation: Any
    balance_loss: Any
    experts: int
    hidden: int
    top_k: int
    is_normalized: bool

    def __init__(
        self,
        experts: int,
        hidden: int,
        top_k: int = 2,
        inputs: int | None = None,
        activation: str | Callable[[Any], Any] = "silu",
        dtype: DTypeLike = "float32",
        device: DeviceLike | None = None,
        is_normalized: bool = True,
    ) -> None:
        if not 1 <= top_k <= experts:
            raise ValueError(f"each position uses 1 to {experts} of {experts} experts, not {top_k}")
        self.experts, self.hidden, self.top_k, self.inputs = experts, hidden, top_k, inputs
        self.is_normalized = is_normalized
        self.activation, self._dtype, self._device = registry.get("activations", activation), dtype, device
        self.balance_loss = Buffer(ops.ones((), dtype, device))
        if inputs is None:
            self.is_built = False
        else:
            self.build((inputs,))

    def build(self, shape: tuple[int, ...]) -> None:
        self.inputs = width = shape[-1]
        inside, outside = (initializers.uniform(-(n**-0.5), n**-0.5) for n in (width, self.hidden))
        self.add_parameter("router", (self.experts, width), inside, self._dtype)
        self.add_parameter("gate", (self.experts, self.hidden, width), inside, self._dtype)
        self.add_parameter("up", (self.experts, self.hidden, width), inside, self._dtype)
        self.add_parameter("down", (self.experts, width, self.hidden), outside, self._dtype)

    def forward(self, x: TensorLike) -> Tensor:
        shape = ops.shape(x)
        rows = ops.reshape(x, (-1, shape[-1]))
        probabilities = ops.softmax(ops.linear(rows, self.router))
        weights, chosen = ops.top_k(probabilities, self.top_k)
        if self.is_normalized:
            weights = ops.divide(weights, ops.sum(weights, -1, keepdims=True))
        marks = ops.one_hot(ops.ravel(chosen), self.experts, dtype="int64")
        shares = ops.mean(ops.cast(marks, probabilities.dtype), 0)
        self._report(ops.multiply(ops.sum(ops.multiply(shares, ops.mean(probabilities, 0))), self.experts))
        results = ops.reshape(self._route(rows, marks), (-1, self.top_k, shape[-1]))
        return ops.reshape(ops.sum(ops.multiply(results, ops.expand_dims(weights, -1)), 1), shape)

    def _route(self, rows: Tensor, marks: Tensor) -> Tensor:
        """Return the outputs of the chosen experts, ``top_k`` for each row; ``marks`` has a 1 for each choice.

        The rows of each expert are laid out in blocks of one size, so that each block has one expert and all blocks are
        one product of matrices: no shape depends on values. At most as many blocks as there are experts are not full.
        """
        count, width = marks.shape[0], rows.shape[-1]
        size = max(-(-count // self.experts), 1)
        blocks = (count + min(self.experts, count) * (size - 1)) // size
        used = ops.floor_divide(ops.add(ops.sum(marks, 0), size - 1), size)
        ends = ops.cumsum(used)
        offsets = ops.multiply(ops.subtract(ends, used), size)
        # the position of each row: the start of its expert's blocks, plus the number of that expert's rows before it
        places = ops.subtract(ops.sum(ops.multiply(marks, ops.add(ops.cumsum(marks, 0), offsets)), -1), 1)
        laid = ops.segment_sum(ops.repeat(rows, self.top_k, 0), places, blocks * size)
        laid = ops.reshape(laid, (blocks, size, width))
        numbers = ops.reshape(ops.arange(blocks, device=ops.get_device(rows)), (blocks, 1))
        past = ops.sum(ops.greater_equal(numbers, ends), -1)
        owners = ops.minimum(past, self.experts - 1)  # the expert of an unused block does not matter
        gates = self.activation(_multiply_blocks(laid, self.gate, owners))
        results = _multiply_blocks(ops.multiply(gates, _multiply_blocks(laid, self.up, owners)), self.down, owners)
        return ops.take(ops.reshape(results, (blocks * size, width)), places, 0)

    def _report(self, loss: Tensor) -> None:
        """Store ``loss`` in the buffer with its graph; assigning it would detach it from the gradient."""
        buffer = self.variable("balance_loss")
        settle([buffer])
        buffer.held, buffer.home = loss._array if type(loss) is EmberTensor else loss, active()


def _multiply_blocks(x: Tensor, weights: Tensor, owners: Tensor) -> Tensor:
    """Multiply each block of ``x`` by the transposed weight of its owner."""
    # torch 2.13: compiled for CPUs, the gradient is wrong where take comes before the transpose
    return ops.matmul(x, ops.take(ops.matrix_transpose(weights), owners, 0))
