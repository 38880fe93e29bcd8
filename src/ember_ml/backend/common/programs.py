"""Programs of compilers that trace a function to one of arrays: keep beside them what else the function returned."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ember_ml.core import trees

__all__ = ["Form", "TracedProgram"]


class Form(NamedTuple):
    """What a trace returned besides arrays, and how often it drew random numbers."""

    structure: trees.Structure
    leaves: list[Any]
    """The leaves of the result, with None where there is an array."""
    places: list[int]
    """The places of the arrays among them."""
    note: Any
    drawn: int

    def fill(self, arrays: Sequence[Any]) -> tuple[Any, Sequence[Any], Any]:
        """Return what the function returned, with these arrays: first those of the result, then the others."""
        count = len(self.places)
        if count == len(self.leaves):
            return self.structure(arrays[:count]), arrays[count:], self.note
        leaves = list(self.leaves)
        for place, array in zip(self.places, arrays, strict=False):
            leaves[place] = array
        return self.structure(leaves), arrays[count:], self.note


class TracedProgram:
    """A function and the forms of its traces, one for each combination of shapes and dtypes."""

    function: Callable[..., Any]
    traced: int
    """The number of traces so far."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function, self.traced = function, 0
        self._forms: dict[Any, Form] = {}
        self._only: Form | None = None  # the form of all traces, where they agree, so that nobody need look it up

    def record(
        self, tensors: Sequence[Any], array_type: type, result: Any, others: Sequence[Any], note: Any, drawn: int
    ) -> list[Any]:
        """Keep the form of what a trace with ``tensors`` returned; return all its arrays."""
        leaves, structure = trees.flatten(result)
        places = [place for place, leaf in enumerate(leaves) if isinstance(leaf, array_type)]
        arrays = [*[leaves[place] for place in places], *others]
        for place in places:
            leaves[place] = None  # an array of the trace would keep all of it alive
        form = Form(structure, leaves, places, note, drawn)
        is_plain = len(places) == len(leaves)  # with no values that may be hard to compare
        is_same = not self._forms or (self._only is not None and is_plain and self._only == form)
        self._only = form if is_same else None
        self._forms[_key(tensors)] = form
        self.traced += 1
        return arrays

    def form_of(self, tensors: Sequence[Any]) -> Form:
        """Return the form of the program for such tensors, which has been traced."""
        return self._only or self._forms[_key(tensors)]


def _key(tensors: Sequence[Any]) -> Any:
    return tuple([(x.shape, x.dtype) for x in tensors])
