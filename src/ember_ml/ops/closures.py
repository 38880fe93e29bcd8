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

    They are looked for in the variables that ``f`` closes over, in containers there, and in the closures of functions
    there; attributes of other objects stay as they are.
    """
    tensors: list[Any] = []
    build = _opened(f, tensors, is_tensor, set())
    return tensors, lambda others: build(iter(others))


def _opened(
    value: Any, tensors: list[Any], is_tensor: Callable[[Any], bool], seen: set[int]
) -> Callable[[Iterator[Any]], Any]:
    if not isinstance(value, FunctionType) or not value.__closure__ or id(value) in seen:
        return _opened_tree(value, tensors, is_tensor)
    seen.add(id(value))  # a function may close over itself
    before = len(tensors)
    builders = [_opened(cell.cell_contents, tensors, is_tensor, seen) for cell in value.__closure__]
    if len(tensors) == before:
        return lambda others: value

    def build(others: Iterator[Any]) -> Any:
        cells = tuple(CellType(builder(others)) for builder in builders)
        made = FunctionType(value.__code__, value.__globals__, value.__name__, value.__defaults__, cells)
        made.__kwdefaults__ = value.__kwdefaults__
        return made

    return build


def _opened_tree(value: Any, tensors: list[Any], is_tensor: Callable[[Any], bool]) -> Callable[[Iterator[Any]], Any]:
    leaves, structure = trees.flatten(value)
    places = [place for place, leaf in enumerate(leaves) if is_tensor(leaf)]
    tensors.extend(leaves[place] for place in places)

    def build(others: Iterator[Any]) -> Any:
        found = list(leaves)
        for place in places:
            found[place] = next(others)
        return structure(found)

    return build if places else lambda others: value
