"""The tensors that a function closes over, as arguments: for engines that differentiate by arguments alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import CellType, FunctionType
from typing import Any

from ember_ml import trees

__all__ = ["open_closure"]


def open_closure(
    f: Callable[..., Any], is_tensor: Callable[[Any], bool]
) -> tuple[list[Any], Callable[[list[Any]], Callable[..., Any]]]:
    """The tensors in the closure of ``f``, and a function that gives ``f`` with others in their place.

    They are looked for in the variables that ``f`` closes over and in its defaults, in containers there, and in the
    same places of functions there; attributes of other objects stay as they are.
    """
    tensors: list[Any] = []
    build = _opened(f, tensors, is_tensor, set())
    return tensors, lambda others: build(iter(others))


def _opened(
    value: Any, tensors: list[Any], is_tensor: Callable[[Any], bool], seen: set[int]
) -> Callable[[Iterator[Any]], Any]:
    """A function that builds ``value`` again, with the next tensors of an iterator in the place of its own."""
    before = len(tensors)
    if isinstance(value, FunctionType):
        build: Callable[[Iterator[Any]], Any] = _opened_function(value, tensors, is_tensor, seen)
    elif is_tensor(value):
        tensors.append(value)
        return next
    else:
        leaves, structure = trees.flatten(value)
        if len(leaves) == 1 and leaves[0] is value:
            return lambda others: value
        builders = [_opened(leaf, tensors, is_tensor, seen) for leaf in leaves]

        build = _Rebuilt(structure, builders)
    return build if len(tensors) > before else lambda others: value


class _Rebuilt:
    """Builds a container again."""

    def __init__(self, structure: trees.Structure, builders: list[Callable[[Iterator[Any]], Any]]) -> None:
        self.structure, self.builders = structure, builders

    def __call__(self, others: Iterator[Any]) -> Any:
        return self.structure([builder(others) for builder in self.builders])


def _opened_function(
    function: FunctionType, tensors: list[Any], is_tensor: Callable[[Any], bool], seen: set[int]
) -> Callable[[Iterator[Any]], Any]:
    if id(function) in seen:  # a function may close over itself
        return lambda others: function
    seen.add(id(function))
    contents = [cell.cell_contents for cell in function.__closure__ or ()]
    parts = (contents, function.__defaults__, function.__kwdefaults__)
    builders = [_opened(part, tensors, is_tensor, seen) for part in parts]

    def build(others: Iterator[Any]) -> Any:
        cells, defaults, kwdefaults = (builder(others) for builder in builders)
        closure = tuple(CellType(content) for content in cells)
        made = FunctionType(function.__code__, function.__globals__, function.__name__, defaults, closure)
        made.__kwdefaults__ = kwdefaults
        return made

    return build
