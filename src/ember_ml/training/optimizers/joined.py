"""Short parameters that a backend's kernel updates in one call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from operator import is_
from typing import Any

from ember_ml.tensor.variable import Variable, values_of

__all__ = ["JoinedVariables"]


class JoinedVariables:
    """Parameters and their slots whose tensors a kernel has joined: ``columns``, of the parameters and of each slot."""

    columns: Sequence[Sequence[Any]]

    def __init__(
        self, named: Mapping[str, Variable], slots: Sequence[Sequence[Variable]], columns: Sequence[Sequence[Any]]
    ) -> None:
        self.columns = columns
        self._named = list(named.items())
        self._variables = [*named.values(), *chain.from_iterable(slots)]
        self._natives = list(chain.from_iterable(columns))

    def are(self, named: Mapping[str, Variable]) -> bool:
        """Return whether they are these parameters, in this order, and hold the joined tensors, as do their slots."""
        is_same = self._named == list(named.items())
        return is_same and all(map(is_, values_of(self._variables), self._natives))
