"""Optimizers whose update of a matrix depends on its rows and columns: Adafactor, Muon."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from ember_ml import ops
from ember_ml.training.optimizers.adaptive import AdamW
from ember_ml.training.optimizers.base import Optimizer, Rate
from ember_ml.training.optimizers.groups import Group
from ember_ml.training.optimizers.settings import FROM_ZERO, SHARE, Ranges
from ember_ml.typing import Tensor

__all__ = ["Adafactor", "Muon"]


class Adafactor(Optimizer):
    """Adam's division by the root mean square, from sums over rows and columns alone, so that it needs little memory.

    A tensor of two or more axes keeps one number for each row and column of its last two axes. The mean of squares
    moves by ``1 - step**-0.8``; the update is scaled down to a root mean square of ``threshold`` where it is larger,
    and by the root mean square of the parameter where that is larger than ``smallest``.

    Args:
        learning_rate: A number, or a schedule of ``training.schedules``.
        decay_power: The power of the step in the decay of the mean of squares.
        epsilon: Added to the squares, against division by 0.
        smallest: The least root mean square of a parameter that scales its update.
        threshold: The largest root mean square of an update.
        weight_decay: The factor of the parameter in the step.
        max_norm: The largest Euclidean norm of all gradients together; larger ones are scaled down.
        max_value: The largest magnitude of each element of the gradients.
        groups: Settings for some of the parameters; see :class:`Optimizer`.
    """

    decay_power: float
    epsilon: float
    smallest: float
    threshold: float
    weight_decay: float

    slots: tuple[str, ...] = ("rows", "columns", "second")
    is_elementwise = False
    ranges: ClassVar[Ranges] = dict.fromkeys(
        ("decay_power", "epsilon", "smallest", "threshold", "weight_decay"), FROM_ZERO
    )

    def __init__(
        self,
        learning_rate: Rate = 0.01,
        decay_power: float = 0.8,
        epsilon: float = 1e-30,
        smallest: float = 1e-3,
        threshold: float = 1.0,
        weight_decay: float = 0.0,
        max_norm: float | None = None,
        max_value: float | None = None,
        groups: Sequence[Group] = (),
    ) -> None:
        super().__init__(learning_rate, max_norm, max_value, groups)
        self.decay_power, self.epsilon, self.smallest = decay_power, epsilon, smallest
        self.threshold, self.weight_decay = threshold, weight_decay

    def scalars(self, step: int, rate: float) -> tuple[float, ...]:
        return rate, 1.0 - step**-self.decay_power

    def fresh(self, slot: str, parameter: Tensor) -> Tensor:
        shape = tuple(parameter.shape)
        if (len(shape) < 2) != (slot == "second"):  # which this parameter does not need
            shape = (0,)
        elif slot != "second":
            shape = shape[:-1] if slot == "rows" else (*shape[:-2], shape[-1])
        return _zeros_beside(parameter, shape)

    def rule(
        self, parameter: Tensor, gradient: Tensor, state: Sequence[Tensor], scalars: Sequence[Any]
    ) -> list[Tensor]:
        (rows, columns, second), (rate, decay) = state, scalars
        square = ops.add(ops.square(gradient), self.epsilon)
        rest = ops.subtract(1.0, decay)
        if len(parameter.shape) < 2:
            second = ops.add(ops.multiply(second, decay), ops.multiply(square, rest))
            step = ops.divide(gradient, ops.sqrt(second))
        else:
            rows = ops.add(ops.multiply(rows, decay), ops.multiply(ops.mean(square, axis=-1), rest))
            columns = ops.add(ops.multiply(columns, decay), ops.multiply(ops.mean(square, axis=-2), rest))
            of_rows = ops.divide(rows, ops.mean(rows, axis=-1, keepdims=True))
            size = ops.multiply(ops.expand_dims(ops.sqrt(of_rows), -1), ops.expand_dims(ops.sqrt(columns), -2))
            step = ops.divide(gradient, size)
        step = ops.divide(step, ops.maximum(ops.divide(_size(step), self.threshold), 1.0))
        rate = ops.multiply(rate, ops.maximum(_size(parameter), self.smallest))
        if self.weight_decay:
            step = ops.add(step, ops.multiply(parameter, self.weight_decay))
        return [ops.subtract(parameter, ops.multiply(step, rate)), rows, columns, second]


def _size(x: Tensor) -> Tensor:
    """Return the root mean square."""
    return ops.sqrt(ops.mean(ops.square(x)))


class Muon(Optimizer):
    """Steps along the orthogonal matrix nearest to the momentum: ``p -= rate * orthogonalize(momentum)``.

    Parameters with two or more axes are matrices of their first axis by the others; all other parameters get the
    updates of :class:`AdamW` with ``other_rate`` times the learning rate.

    Args:
        learning_rate: A number, or a schedule of ``training.schedules``.
        momentum: The part of the last momentum that is kept.
        nesterov: Whether the gradient counts once more in each step.
        iterations: The number of steps of the orthogonalization.
        weight_decay: The factor of the parameter in the step.
        other_rate: The rate of all other parameters, as a multiple of the learning rate.
        max_norm: The largest Euclidean norm of all gradients together; larger ones are scaled down.
        max_value: The largest magnitude of each element of the gradients.
        groups: Settings for some of the parameters; see :class:`Optimizer`.
    """

    iterations: int
    momentum: float
    nesterov: bool
    other_rate: float
    weight_decay: float

    slots: tuple[str, ...] = ("first", "second")
    is_elementwise = False
    ranges: ClassVar[Ranges] = {"momentum": SHARE, "weight_decay": FROM_ZERO, "other_rate": FROM_ZERO}

    def __init__(
        self,
        learning_rate: Rate = 0.02,
        momentum: float = 0.95,
        nesterov: bool = True,
        iterations: int = 5,
        weight_decay: float = 0.0,
        other_rate: float = 0.05,
        max_norm: float | None = None,
        max_value: float | None = None,
        groups: Sequence[Group] = (),
    ) -> None:
        super().__init__(learning_rate, max_norm, max_value, groups)
        self.momentum, self.nesterov, self.iterations = momentum, nesterov, iterations
        self.weight_decay, self.other_rate = weight_decay, other_rate
        self._other = AdamW(0.0, weight_decay=weight_decay)

    def fresh(self, slot: str, parameter: Tensor) -> Tensor:
        return (
            ops.zeros_like(parameter) if slot == "first" or len(parameter.shape) < 2 else _zeros_beside(parameter, (0,))
        )

    def scalars(self, step: int, rate: float) -> tuple[float, ...]:
        return rate, *self._other.scalars(step, rate * self.other_rate)

    def rule(
        self, parameter: Tensor, gradient: Tensor, state: Sequence[Tensor], scalars: Sequence[Any]
    ) -> list[Tensor]:
        rate, *others = scalars
        if len(parameter.shape) < 2:
            return self._other.rule(parameter, gradient, state, others)
        momentum = ops.add(ops.multiply(state[0], self.momentum), gradient)
        ahead = ops.add(gradient, ops.multiply(momentum, self.momentum)) if self.nesterov else momentum
        shape = tuple(parameter.shape)
        matrix = ops.reshape(ahead, (shape[0], -1))
        rows, columns = matrix.shape
        step = ops.multiply(orthogonalize(matrix, self.iterations), max(1.0, rows / columns) ** 0.5)
        if self.weight_decay:
            parameter = ops.subtract(parameter, ops.multiply(parameter, ops.multiply(rate, self.weight_decay)))
        return [ops.subtract(parameter, ops.multiply(ops.reshape(step, shape), rate)), momentum, state[1]]


def _zeros_beside(parameter: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Return zeros of the dtype and on the device of a parameter."""
    return ops.zeros(shape, dtype=parameter.dtype, device=ops.get_device(parameter))


def orthogonalize(matrix: Tensor, iterations: int = 5) -> Tensor:
    """Return a matrix with the singular vectors of ``matrix`` and singular values near 1 (Newton-Schulz iterations)."""
    a, b, c = 3.4445, -4.7750, 2.0315  # the quintic polynomial that raises small singular values fastest
    is_tall = matrix.shape[0] > matrix.shape[1]
    x = ops.transpose(matrix) if is_tall else matrix
    x = ops.divide(x, ops.add(ops.sqrt(ops.sum(ops.square(x))), 1e-7))
    for _ in range(iterations):
        gram = ops.matmul(x, ops.transpose(x))
        mixed = ops.add(ops.multiply(gram, b), ops.multiply(ops.matmul(gram, gram), c))
        x = ops.add(ops.multiply(x, a), ops.matmul(mixed, x))
    return ops.transpose(x) if is_tall else x
