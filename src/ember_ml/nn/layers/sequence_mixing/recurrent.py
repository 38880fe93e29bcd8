"""Recurrent layers: a state that each position in turn changes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from ember_ml import ops
from ember_ml.autodiff.engines import run
from ember_ml.backend.contract import Backend
from ember_ml.backend.selection import active, half_here
from ember_ml.nn import initializers
from ember_ml.nn.layers.sequence_mixing.base import SequenceMixingLayer, loop_over_time, split_sizes
from ember_ml.tensor.ember_tensor import EmberTensor
from ember_ml.tensor.var import Var
from ember_ml.transforms.arguments import restore_kind
from ember_ml.typing import DeviceLike, DTypeLike, Tensor, TensorLike

__all__ = ["GRU", "LSTM", "RNN"]

Carry = tuple[Tensor, ...]
"""The tensors that a cell passes to the next position, each (batch, hidden); the first is also the result."""


class _Recurrent(SequenceMixingLayer):
    """Layers of cells, one above the other, in one or both directions. Names and shapes are those of ``torch.nn``."""

    inputs: int | None
    hidden: int
    layers: int
    bidirectional: bool
    dropout: float
    has_bias: bool

    gates: ClassVar[int]
    """The number of gates: a cell computes ``gates * hidden`` elements from an input and its state."""
    carried: ClassVar[int] = 1
    """The number of tensors in a carry."""
    has_known_cell: ClassVar[bool] = False
    """Whether the functions of libraries compute the cell; a subclass with a cell of its own has another one."""

    def __init_subclass__(cls, **rest: Any) -> None:
        super().__init_subclass__(**rest)
        if "cell" in vars(cls):
            cls.has_known_cell = vars(cls).get("has_known_cell", False)

    @property
    def kind(self) -> str:
        """The name of this layer for ``backend.recurrent``."""
        raise NotImplementedError

    def __init__(
        self,
        inputs: int | None,
        hidden: int | None = None,
        layers: int = 1,
        bidirectional: bool = False,
        dropout: float = 0.0,
        bias: bool = True,
        dtype: DTypeLike = "float32",
        device: DeviceLike | None = None,
    ) -> None:
        self.inputs, self.hidden = split_sizes(type(self).__name__, inputs, hidden)
        if layers < 1:
            raise ValueError(f"{type(self).__name__} has at least 1 layer, not {layers!r}")
        if not 0.0 <= dropout < 1.0:
            raise ValueError(f"the dropout of {type(self).__name__} is a number from 0 to below 1, not {dropout!r}")
        self.layers, self.bidirectional, self.dropout, self.has_bias = layers, bidirectional, dropout, bias
        self._dtype, self._device = dtype, device
        directions = ("", "_reverse") if bidirectional else ("",)
        self._cells = [(f"_l{layer}{way}", bool(way)) for layer in range(layers) for way in directions]
        if self.inputs is None:
            self.is_built = False
        else:
            self.build((self.inputs,))

    def build(self, shape: tuple[int, ...]) -> None:
        self.inputs = shape[-1]
        rows, directions = self.gates * self.hidden, 2 if self.bidirectional else 1
        draw = initializers.uniform(-(self.hidden**-0.5), self.hidden**-0.5)
        for place, (name, _) in enumerate(self._cells):
            below = self.inputs if place < directions else directions * self.hidden
            self.add_parameter(f"weight_ih{name}", (rows, below), draw, self._dtype)
            self.add_parameter(f"weight_hh{name}", (rows, self.hidden), draw, self._dtype)
            if self.has_bias:
                self.add_parameter(f"bias_ih{name}", (rows,), draw, self._dtype)
                self.add_parameter(f"bias_hh{name}", (rows,), draw, self._dtype)

    def initial_state(self, batch: int) -> Any:
        """Zeros: what the layer starts from if no state is given."""
        zeros = self.zeros(len(self._cells), batch, self.hidden)
        return zeros if self.carried == 1 else (zeros,) * self.carried

    def forward(self, x: TensorLike, mask: TensorLike | None = None, state: Any = None) -> Any:
        compilation = active().compilation
        if compilation is not None and half_here() is None and compilation.may_leave_program():
            # torch 2.13: a program would have each position, and take twice the time of PyTorch's own function
            return compilation.run_uncompiled(self._compute, x, mask, state)
        return self._compute(x, mask, state)

    def _compute(self, x: TensorLike, mask: TensorLike | None, state: Any) -> Any:
        x = self.sequences(x, mask)
        half = half_here()
        if half is not None:  # projections are, so that the state would go to and fro between the dtypes
            x = ops.cast(x, half)
        parts = tuple(part if half is None else ops.cast(part, half) for part in self._initial_carry(x, state))
        drops = self.training and self.dropout > 0.0 and self.layers > 1
        found = None if drops or half is not None or not self.has_known_cell else self._run_native(x, parts)
        y, last = self._run_cells(x, parts, self._read_weights(), drops) if found is None else found
        if state is None:
            return y
        return y, last[0] if self.carried == 1 else tuple(last)

    def _initial_carry(self, x: Tensor, state: Any) -> Carry:
        """Return the first carry of all cells, each part (layers * directions, batch, hidden)."""
        shape = (len(self._cells), x.shape[0], self.hidden)
        if state is None:
            return (ops.zeros(shape, dtype=x.dtype, device=ops.get_device(x)),) * self.carried
        parts = (state,) if self.carried == 1 else tuple(state)
        if len(parts) != self.carried or any(tuple(ops.shape(part)) != shape for part in parts):
            many = "one tensor" if self.carried == 1 else f"{self.carried} tensors"
            raise ValueError(f"the state of this {type(self).__name__} is {many} of shape {shape}")
        return parts

    def _read_weights(self) -> dict[str, Any]:
        """Return the parameters of all cells in their order, by name."""
        names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh") if self.has_bias else ("weight_ih", "weight_hh")
        return {f"{name}{cell}": getattr(self, f"{name}{cell}") for cell, _ in self._cells for name in names}

    def _run_native(self, x: Tensor, parts: Carry) -> tuple[Tensor, Carry] | None:
        """Run the library's own function; return None where it has none."""
        backend = active()
        library = backend.recurrent
        if library is None:
            return None
        weights = self._read_weights()
        natives = [t._array if type(t) is EmberTensor else t for t in (x, *parts, *weights.values())]
        settings = self.has_bias, self.layers, self.bidirectional
        end = 1 + self.carried
        if all(map(backend.is_native, natives)):
            found = library.run(self.kind, natives[0], natives[1:end], natives[end:], *settings)
            if found is None:
                return None
            tensors = [found[0], *found[1]]
        elif library.pullback is None:
            return None
        else:
            tensors = self._record(library.pullback, backend, natives, list(weights))
        is_portable = any(type(t) is EmberTensor for t in (x, *parts))
        y, *last = (restore_kind(t, is_portable, backend) for t in tensors)
        return y, tuple(last)

    def _record(
        self, pullback: Callable[..., Any], backend: Backend, leaves: list[Any], names: list[str]
    ) -> Sequence[Any]:
        """Return the results and the last state of recorded tensors, with the library's gradient where it serves.

        It serves native tensors. Gradients of gradients are those of the loop over ops.
        """
        end, wants_x = 1 + self.carried, type(leaves[0]) is Var and leaves[0].tape.is_recorded(leaves[0])

        def loop(x: Any, *rest: Any) -> list[Any]:
            y, last = self._run_cells(x, rest[: end - 1], dict(zip(names, rest[end - 1 :], strict=True)), False)
            return [y, *last]

        def compute(*leaves: Any) -> tuple[Sequence[Any], Callable[[Sequence[Any]], Sequence[Any]]]:
            found = None
            if all(map(backend.is_native, leaves)):
                settings = self.has_bias, self.layers, self.bidirectional
                found = pullback(self.kind, leaves[0], leaves[1:end], leaves[end:], *settings, wants_x)
            if found is None:
                return run("pullback", loop, backend, leaves)
            (y, last), pull = found

            def pull_any(gradients: Sequence[Any]) -> Sequence[Any]:
                if all(map(backend.is_native, gradients)):
                    return pull(gradients[0], gradients[1:])
                return run("pullback", loop, backend, leaves)[1](gradients)

            return [y, *last], pull_any

        return run("custom", compute, backend, leaves)

    def _run_cells(
        self, x: Tensor, parts: Sequence[Tensor], weights: dict[str, Any], drops: bool
    ) -> tuple[Tensor, Carry]:
        """Run all cells op by op, with dropout between the layers where it ``drops``."""
        carries = list(zip(*(ops.unstack(part) for part in parts), strict=True))
        directions = 2 if self.bidirectional else 1
        for first in range(0, len(self._cells), directions):
            if first and drops:
                x = ops.dropout(x, self.dropout)
            found = []
            for place in range(first, first + directions):
                name, reverse = self._cells[place]
                carries[place], y = self._run_cell(x, name, carries[place], reverse, weights)
                found.append(y)
            x = found[0] if directions == 1 else ops.concatenate(found, axis=-1)
        return x, tuple(ops.stack(column) for column in zip(*carries, strict=True))

    def _run_cell(
        self, x: Tensor, name: str, carry: Carry, reverse: bool, weights: dict[str, Any]
    ) -> tuple[Carry, Tensor]:
        """Run one cell over all positions; the projection of the inputs is computed for all at once."""
        weight = weights[f"weight_hh{name}"]
        inner, outer = self._split_biases(weights, name)
        projected = ops.linear(x, weights[f"weight_ih{name}"], outer)

        def step(carry: Carry, parts: tuple[Tensor]) -> tuple[Carry, Tensor]:
            carry = self.cell(parts[0], ops.linear(carry[0], weight, inner), carry)
            return carry, carry[0]

        return loop_over_time(step, carry, (projected,), reverse)

    def count_flops(self, x: TensorLike, mask: TensorLike | None = None, state: Any = None) -> int | None:
        """Return the floating-point operations of the products, which no op computes where the library runs them."""
        matrices = [variable.size for _, variable in self.own_variables() if len(variable.shape) == 2]
        return 2 * math.prod(ops.shape(x)[:-1]) * sum(matrices)

    def _split_biases(self, weights: dict[str, Any], name: str) -> tuple[Tensor | None, Tensor | None]:
        """Return (recurrent bias, input bias); the input bias is folded into the projection of the inputs."""
        if not self.has_bias:
            return None, None
        return None, ops.add(weights[f"bias_ih{name}"], weights[f"bias_hh{name}"])

    def cell(self, from_input: Tensor, from_state: Tensor, carry: Carry) -> Carry:
        """Return the next carry from the gates' projections of input and state, and the present carry."""
        raise NotImplementedError


class RNN(_Recurrent):
    r"""Elman's recurrent layer: ``h = tanh(W x + b + U h' + c)``, or with ``relu``.

    ``RNN(inputs, hidden)``, or ``RNN(hidden)``, which takes the width of its first input. The result holds the state of
    the last of the ``layers`` at each position, of both directions side by side if ``bidirectional``. With ``state``,
    of shape (layers * directions, batch, hidden), it gives its result and the last state.

    Args:
        inputs: The width of the input; None or left out: that of the first input.
        hidden: The width of the state.
        layers: The number of layers, one on top of the other.
        bidirectional: Whether a second pass runs from the end to the start.
        dropout: The share of elements between layers that become 0 in training.
        bias: Whether a bias is added.
        activation: "tanh" or "relu".
        dtype: The dtype of the parameters.
        device: Where they are made; None: on the default device.

    >>> from ember_ml import nn, ops
    >>> layer = nn.RNN(4, 8)
    >>> y, state = layer(ops.ones((2, 5, 4)), state=layer.initial_state(2))
    >>> ops.shape(y), ops.shape(state)
    ((2, 5, 8), (1, 2, 8))
    """

    gates = 1
    has_known_cell = True
    activation: str

    def __init__(
        self,
        inputs: int | None,
        hidden: int | None = None,
        layers: int = 1,
        bidirectional: bool = False,
        dropout: float = 0.0,
        bias: bool = True,
        activation: str = "tanh",
        dtype: DTypeLike = "float32",
        device: DeviceLike | None = None,
    ) -> None:
        if activation not in ("tanh", "relu"):
            raise ValueError(f"the activation of RNN is 'tanh' or 'relu', not {activation!r}")
        self.activation = activation
        super().__init__(inputs, hidden, layers, bidirectional, dropout, bias, dtype, device)

    @property
    def kind(self) -> str:
        return self.activation

    def cell(self, from_input: Tensor, from_state: Tensor, carry: Carry) -> Carry:
        sums = ops.add(from_input, from_state)
        return (ops.tanh(sums) if self.activation == "tanh" else ops.relu(sums),)


class GRU(_Recurrent):
    """Gated recurrent units: ``h = (1 - z) n + z h'`` with a candidate ``n`` that sees ``h'`` through the gate ``r``.

    As :class:`RNN`. The gates lie in the weights as in PyTorch: r, z, n.

    >>> from ember_ml import nn, ops
    >>> ops.shape(nn.GRU(8, bidirectional=True)(ops.ones((2, 5, 4))))
    (2, 5, 16)
    """

    gates = 3
    has_known_cell = True

    @property
    def kind(self) -> str:
        return "gru"

    def _split_biases(self, weights: dict[str, Any], name: str) -> tuple[Tensor | None, Tensor | None]:
        # the gate r multiplies the recurrent bias of n, so that it cannot be folded into the projection
        return (weights[f"bias_hh{name}"], weights[f"bias_ih{name}"]) if self.has_bias else (None, None)

    def cell(self, from_input: Tensor, from_state: Tensor, carry: Carry) -> Carry:
        both, candidate = ops.split(from_input, (2 * self.hidden,), axis=-1)
        both_state, candidate_state = ops.split(from_state, (2 * self.hidden,), axis=-1)
        r, z = ops.split(ops.sigmoid(ops.add(both, both_state)), 2, axis=-1)
        n = ops.tanh(ops.add(candidate, ops.multiply(r, candidate_state)))
        return (ops.add(n, ops.multiply(z, ops.subtract(carry[0], n))),)


class LSTM(_Recurrent):
    """Long short-term memory: ``c = f c' + i g`` and ``h = o tanh(c)``, with three gates and a candidate ``g``.

    As :class:`RNN`, but its state is a pair: the results ``h`` and the memory ``c``. The gates lie in the weights as in
    PyTorch: i, f, g, o.

    >>> from ember_ml import nn, ops
    >>> layer = nn.LSTM(4, 8, layers=2)
    >>> y, (h, c) = layer(ops.ones((2, 5, 4)), state=layer.initial_state(2))
    >>> ops.shape(y), ops.shape(h), ops.shape(c)
    ((2, 5, 8), (2, 2, 8), (2, 2, 8))
    """

    gates = 4
    carried = 2
    has_known_cell = True

    @property
    def kind(self) -> str:
        return "lstm"

    def cell(self, from_input: Tensor, from_state: Tensor, carry: Carry) -> Carry:
        i, f, g, o = ops.split(ops.add(from_input, from_state), 4, axis=-1)
        kept = ops.multiply(ops.sigmoid(f), carry[1])
        memory = ops.add(kept, ops.multiply(ops.sigmoid(i), ops.tanh(g)))
        return ops.multiply(ops.sigmoid(o), ops.tanh(memory)), memory
