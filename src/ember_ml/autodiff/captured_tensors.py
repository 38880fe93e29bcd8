"""The tensors that a function holds besides its arguments, and the same function with others in their place.

Python binds such tensors in the cells of nested functions, in default values, in ``functools.partial`` and in the
object of a method. A function is never changed: another one with the same code takes its place, and what that one
assigns to outer variables is assigned to the variables of the first.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

from ember_ml.backend.built_in import BUILT_IN
from ember_ml.core import trees
from ember_ml.core.dtypes import EmberDType

__all__ = ["Closure", "open_closure"]

_Build = Callable[[Iterator[Any]], Any]

_PLAIN = (bool, int, float, complex, str, bytes, type(None), type(Ellipsis), range, slice, EmberDType, type)
_COMPUTING = {entry.library.partition(".")[0] for entry in BUILT_IN.values()}
_LIBRARIES = frozenset({"ember_ml", *_COMPUTING, *sys.stdlib_module_names}) - {"__main__"}


class Closure(NamedTuple):
    """The tensors that a function holds; ``rebuild`` makes the same function with others in their place.

    ``is_complete`` says that these are all: that the function cannot reach tensors by any other way.
    """

    tensors: list[Any]
    rebuild: Callable[[Sequence[Any]], Callable[..., Any]]
    is_complete: bool


def open_closure(function: Callable[..., Any], is_tensor: Callable[[Any], bool]) -> Closure:
    """Find the tensors that ``function`` holds besides its arguments."""
    opening = _Opening(is_tensor)
    build = opening.split(function)

    def rebuild(tensors: Sequence[Any]) -> Callable[..., Any]:
        if build is None:
            return function
        opening.replaced.clear()
        made, replaced = build(iter(tensors)), list(opening.replaced)

        def call(*args: Any, **kwargs: Any) -> Any:
            try:
                return made(*args, **kwargs)
            finally:
                for old, new, content in replaced:
                    if _content(new) is not content:  # the function has assigned to it
                        old.cell_contents = _content(new)

        return call

    return Closure(opening.found, rebuild, opening.is_complete)


class _Opening:
    def __init__(self, is_tensor: Callable[[Any], bool]) -> None:
        self.is_tensor = is_tensor
        self.found: list[Any] = []
        self.is_complete = True
        self.inside: set[int] = set()  # the functions that are being opened, of which some hold themselves
        self.seen: set[int] = set()  # the functions whose global names were followed
        self.replaced: list[tuple[CellType, CellType, Any]] = []  # cells, those in their place, what was put into these

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
            self.is_complete = self.is_complete and _is_plain(value)
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
        if _is_ours(function):
            return None
        if id(function) in self.inside:
            self.is_complete = False
            return None
        self.inside.add(id(function))
        self._follow_globals(function)
        code, cells = function.__code__, function.__closure__ or ()
        contents = [_content(cell) for cell in cells]
        parts = self._of_parts((*contents, function.__defaults__, function.__kwdefaults__))
        self.inside.discard(id(function))
        if parts is None:
            return None

        def build(tensors: Iterator[Any]) -> FunctionType:
            *new_contents, defaults, kwdefaults = parts(tensors)
            new_cells = tuple(map(self._replace, cells, contents, new_contents))
            made = FunctionType(code, function.__globals__, function.__name__, defaults, new_cells)
            made.__kwdefaults__ = kwdefaults
            return made

        return build

    def _replace(self, cell: CellType, old: Any, new: Any) -> CellType:
        if old is new:
            return cell
        made = CellType(new)
        self.replaced.append((cell, made, new))
        return made

    def _follow_globals(self, function: FunctionType) -> None:
        """Find out whether tensors can be reached by the names of the module, which stay as they are."""
        if id(function) in self.seen or not self.is_complete:
            return
        self.seen.add(id(function))
        for name in _names(function.__code__):
            value = function.__globals__.get(name)
            if type(value) is FunctionType and not _is_ours(value):
                self._follow_globals(value)
                held = (*map(_content, value.__closure__ or ()), value.__defaults__, value.__kwdefaults__)
                self.is_complete = self.is_complete and all(map(_is_plain_tree, held))
            elif type(value) is not FunctionType:
                self.is_complete = self.is_complete and _is_plain_tree(value)


def _is_ours(function: FunctionType) -> bool:
    """Whether it is a function of Ember ML without a closure, which holds nobody's tensors."""
    return function.__closure__ is None and function.__module__.partition(".")[0] == "ember_ml"


def _is_plain(value: Any) -> bool:
    """Whether no tensor can be reached through ``value``, which is no container."""
    if isinstance(value, ModuleType):
        return value.__name__.partition(".")[0] in _LIBRARIES
    return isinstance(value, _PLAIN) or type(value) is BuiltinFunctionType or _is_library_function(value)


def _is_library_function(value: Any) -> bool:
    """Whether ``value`` is a function of a library that is written in C."""
    kind = type(value)
    return "func" in kind.__name__ and kind.__module__.partition(".")[0] in (*_LIBRARIES, "nanobind")


def _is_plain_tree(value: Any) -> bool:
    return all(_is_plain(leaf) or (type(leaf) is FunctionType and _is_ours(leaf)) for leaf in trees.flatten(value)[0])


def _partial(function: Any, args: Any, keywords: Any) -> Any:
    return partial(function, *args, **keywords)


def _content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # of a variable that is not assigned yet
        return None


@cache
def _names(code: CodeType) -> frozenset[str]:
    """Return the names that the code, and code inside it, looks up: those of globals, and of attributes too."""
    inner = (_names(const) for const in code.co_consts if type(const) is CodeType)
    return frozenset(code.co_names).union(*inner)
