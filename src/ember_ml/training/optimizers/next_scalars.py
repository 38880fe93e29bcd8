"""The scalars of the updates that a compiled program makes, as its arguments, made ahead for many steps at once."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ember_ml.backend.contract import Backend
from ember_ml.core.dtypes import complex128, float64
from ember_ml.tensor.variable import Variable
from ember_ml.training.optimizers.groups import find_rate

if TYPE_CHECKING:
    from ember_ml.training.optimizers.base import Optimizer

__all__ = ["WIDE", "NextScalars"]

AHEAD = 32
"""The number of updates whose scalars are made together, once as many have followed each other at the same rate."""


WIDE = frozenset({float64, complex128})
"""The dtypes of parameters whose scalars must not be rounded to float32."""


class NextScalars:
    """The scalars of an optimizer's next updates, each a tensor of all its members' scalars."""

    __slots__ = ("_backend", "_code", "_end", "_optimizer", "_rate", "_rows", "_start", "variable")

    variable: Variable
    """Holds the scalars while a function is traced."""

    def __init__(self, optimizer: Optimizer) -> None:
        self._optimizer = optimizer
        self._code = "f"
        numbers = [x for _, member in optimizer.members() for x in member.scalars(1, 0.0)]
        self.variable = Variable(array(self._code, numbers))
        self._backend: Backend | None = None
        self._rate: Any = None  # the number that the rate was when the rows were made; None where it may change unseen
        self._rows: list[Any] = []  # native tensors, that of the next update last
        self._start, self._end = 0, -1  # the updates since when the rate is the same, and up to which rows are made

    def fit(self, parameters: Iterable[Variable]) -> None:
        """Make the scalars wide enough for the parameters that they change."""
        code = "d" if any(x.dtype in WIDE for x in parameters) else "f"
        if code != self._code:
            self._code, self._rows, self._end = code, [], -1
            self.variable.assign(array(code, [0.0] * self.variable.shape[0]))

    def take(self, backend: Backend) -> Any:
        """Return the scalars of the next update."""
        rows, optimizer = self._rows, self._optimizer
        if (
            optimizer.learning_rate is not self._rate
            or self._end - len(rows) != optimizer.step
            or backend is not self._backend
        ):
            rows = self._make(backend, 1)
            self._start = optimizer.step
        elif not rows:
            rows = self._make(backend, 1 if optimizer.step - self._start < AHEAD else AHEAD)
        return rows.pop()

    def _make(self, backend: Backend, count: int) -> list[Any]:
        optimizer = self._optimizer
        steps = range(optimizer.step, optimizer.step + count)
        numbers = [_scalars_after(optimizer, step) for step in reversed(steps)]
        if self.variable.home is not backend:
            self.variable.assign(array(self._code, numbers[-1]))
        if count > 1 and numbers.count(numbers[0]) == count:
            self.variable.assign(array(self._code, numbers[0]))
            self._rows = [self.variable.held] * count
        else:
            assert backend.compilation is not None  # which asks for them
            self._rows = backend.compilation.arguments(numbers, self.variable.held)
        is_fixed = not optimizer.groups and not callable(optimizer.learning_rate)
        self._rate = optimizer.learning_rate if is_fixed else None
        self._backend, self._end = backend, steps.stop
        return self._rows


def _scalars_after(optimizer: Optimizer, step: int) -> list[float]:
    """Return the scalars of all members, one after another, for the update after ``step`` updates."""
    found: list[float] = []
    for places, member in optimizer.members():
        found += member.scalars(step + 1, find_rate(optimizer, places, step))
    return found
