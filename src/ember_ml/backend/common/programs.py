"""Programs of compilers that run a function once on traced arrays: keep what it returned besides arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ember_ml.core import trees

__all__ = ["Form", "TracedProgram", "follows_python", "may_leave_program", "run_uncompiled"]


def follows_python() -> bool:
    return False


def may_leave_program() -> bool:
    return False


def run_uncompiled(function: Callable[..., Any], *args: Any) -> Any:
    return function(*args)


class Form(NamedTuple):
    """What a trace returned besides arrays, and how often it drew random numbers."""

    structure: trees.Structure
    leaves: list[Any]
    """The leaves of the result, with None where there is an array."""
    places: list[int] | None
    """The places of the arrays among them; None where the compiler knows the containers, and returns the result."""
    note: Any
    drawn: int

    def fill(self, found: Any, others: Sequence[Any]) -> tuple[Any, Sequence[Any], Any]:
        """Return what the function returned: ``found`` is the result, or the list of its arrays."""
        if self.places is None:
            return found, others, self.note
        leaves = list(self.leaves)
        for place, array in zip(self.places, found, strict=True):
            leaves[place] = array
        return self.structure(leaves), others, self.note


class TracedProgram:
    """A function and the forms of its traces, one for each combination of shapes and dtypes."""

    function: Callable[..., Any]
    traced: int
    """The number of traces so far."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function, self.traced = function, 0
        self._forms: dict[Any, Form] = {}
        self.only: Form | None = None
        """The form of all traces, where they agree, so that nobody need look it up."""

    def record(
        self, tensors: Sequence[Any], array_type: type, result: Any, others: Sequence[Any], note: Any, drawn: int
    ) -> tuple[Any, list[Any]]:
        """Keep the form of what a trace with ``tensors`` returned; return what is for :meth:`Form.fill`."""
        leaves, structure = trees.flatten(result)
        places = [place for place, leaf in enumerate(leaves) if isinstance(leaf, array_type)]
        arrays = [leaves[place] for place in places]
        for place in places:
            leaves[place] = None  # an array of the trace would keep all of it alive
        is_plain = len(places) == len(leaves)  # with no values that may be hard to compare
        is_whole = is_plain and _is_of_tuples(result)
        form = Form(structure, leaves, None if is_whole else places, note, drawn)
        is_same = not self._forms or (self.only is not None and is_plain and self.only == form)
        self.only = form if is_same else None
        self._forms[_key(tensors)] = form
        self.traced += 1
        return result if is_whole else arrays, list(others)

    def form_of(self, tensors: Sequence[Any]) -> Form:
        """Return the form of the program for such tensors, which has been traced."""
        return self.only or self._forms[_key(tensors)]


def _is_of_tuples(tree: Any) -> bool:
    """Return whether the containers of a tree are tuples, lists and None, which every compiler returns as they are."""
    kind = type(tree)
    if kind is dict or issubclass(kind, dict):
        return False  # JAX 0.10: sorts the keys
    return all(map(_is_of_tuples, tree)) if kind is tuple or kind is list else True


def _key(tensors: Sequence[Any]) -> Any:
    return tuple([(x.shape, x.dtype) for x in tensors])
