"""The tensors that a function holds besides its arguments, and the same function with others in their place.

Python binds such tensors in the cells of nested functions, in default values, in ``functools.partial`` and in the
object of a method. A function is never changed: another one with the same code takes its place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dis import get_instructions
from functools import partial
from types import CellType, CodeType, FunctionType, MethodType
from typing import Any

from ember_ml import trees

__all__ = ["open_closure"]

_Build = Callable[[Iterator[Any]], Any]


def open_closure(
    function: Callable[..., Any], is_tensor: Callable[[Any], bool]
) -> tuple[list[Any], Callable[[Sequence[Any]], Callable[..., Any]]]:
    """The tensors that ``function`` holds, and what makes the same function with others in their place."""
    found: list[Any] = []
    build = _Opening(is_tensor, found).split(function)
    return found, lambda tensors: function if build is None else build(iter(tensors))


class _Opening:
    def __init__(self, is_tensor: Callable[[Any], bool], found: list[Any]) -> None:
        self.is_tensor, self.found = is_tensor, found
        self.inside: set[int] = set()  # the functions that are being opened, of which some hold themselves

    def split(self, value: Any) -> _Build | None:
        """What builds ``value`` from other tensors than those that it holds; None where it holds none."""
        if self.is_tensor(value):
            self.found.append(value)
            return next
        if type(value) is FunctionType:
            return self._of_function(value)
        if type(value) is MethodType:
            owner = self.split(value.__self__)
            return None if owner is None else lambda tensors: MethodType(value.__func__, owner(tensors))
        if type(value) is partial:
            parts = self._of_parts((value.func, value.args, value.keywords))
            return None if parts is None else lambda tensors: _partial(*parts(tensors))
        leaves, structure = trees.flatten(value)
        if len(leaves) == 1 and leaves[0] is value:
            return None
        parts = self._of_parts(leaves)
        return None if parts is None else lambda tensors: structure(parts(tensors))

    def _of_parts(self, values: Sequence[Any]) -> Callable[[Iterator[Any]], list[Any]] | None:
        builds = [self.split(value) for value in values]
        if not any(builds):
            return None
        pairs = list(zip(values, builds, strict=True))
        return lambda tensors: [value if build is None else build(tensors) for value, build in pairs]

    def _of_function(self, function: FunctionType) -> _Build | None:
        if id(function) in self.inside:
            return None
        self.inside.add(id(function))
        code, cells = function.__code__, function.__closure__ or ()
        changed = _changed_cells(code)
        named = zip(code.co_freevars, cells, strict=True)
        contents = [None if name in changed else _content(cell) for name, cell in named]
        parts = self._of_parts((*contents, function.__defaults__, function.__kwdefaults__))
        self.inside.discard(id(function))
        if parts is None:
            return None

        def build(tensors: Iterator[Any]) -> FunctionType:
            *new_contents, defaults, kwdefaults = parts(tensors)
            triples = zip(cells, contents, new_contents, strict=True)
            new_cells = tuple(cell if old is new else CellType(new) for cell, old, new in triples)
            made = FunctionType(code, function.__globals__, function.__name__, defaults, new_cells)
            made.__kwdefaults__ = kwdefaults
            return made

        return build


def _partial(function: Any, args: Any, keywords: Any) -> Any:
    return partial(function, *args, **keywords)


def _content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # of a variable that is not assigned yet
        return None


def _changed_cells(code: CodeType) -> set[str]:
    """The outer variables that the code, or code inside it, assigns to: they must stay the ones that they are."""
    changed = {step.argval for step in get_instructions(code) if step.opname in ("STORE_DEREF", "DELETE_DEREF")}
    inner = (constant for constant in code.co_consts if type(constant) is CodeType)
    return (changed | {name for found in map(_changed_cells, inner) for name in found}) & set(code.co_freevars)
