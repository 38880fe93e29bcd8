"""Find the modules and optimizers that a function captures, and pass their tensors to the compiled program."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from types import FunctionType
from typing import Any

from ember_ml.backend import selection
from ember_ml.backend.selection import active
from ember_ml.core import trees
from ember_ml.tensor.variable import Variable, assign_all, keep, put_back, values_of

__all__ = ["Holder", "State", "find_holders"]


class Holder:
    """Something that holds variables: a module, an optimizer."""

    def held(self) -> tuple[list[Variable], Hashable] | None:
        """Return the variables that a function may read or change, and a key of what else a program depends on.

        None while the variables are not all made.
        """
        raise NotImplementedError

    def trained_variables(self) -> dict[str, Variable]:
        """Return the variables by name that a gradient with respect to this object differentiates by."""
        raise TypeError(f"a gradient is taken with respect to tensors and modules, not {type(self).__name__}")

    def begin_trace(self) -> None:
        """Prepare for the trace of a function that uses this object."""

    def end_trace(self) -> Any:
        """Return what the trace changed besides variables, as a plain value for ``after_run``."""

    def made_in_trace(self) -> list[Variable]:
        """Return the variables that were made during the trace, such as the slots of an unfrozen parameter."""
        return []

    def after_run(self, done: Any, made: Sequence[Any]) -> None:
        """Repeat after a run of the program what ``end_trace`` returned.

        ``made`` are the values of the variables that the trace made, in their order.
        """


class State:
    """The variables of the holders that a compiled function uses, for one call of it."""

    __slots__ = ("holders", "key", "variables")

    holders: Sequence[Holder]
    key: Hashable
    variables: list[Variable]

    def __init__(self, holders: Sequence[Holder], variables: list[Variable], key: Hashable) -> None:
        self.holders, self.variables, self.key = holders, variables, key

    @classmethod
    def of(cls, holders: Sequence[Holder]) -> State | None:
        """Return the state of ``holders``; None where one of them has not made its variables yet."""
        if not holders:
            return _NOTHING
        variables: list[Variable] = []
        keys: list[Hashable] = []
        for holder in holders:
            found = holder.held()
            if found is None:
                return None
            variables += found[0]
            keys.append(found[1])
        if len(holders) > 1:
            variables = list(dict.fromkeys(variables))
        return cls(holders, variables, (tuple(keys), len(variables)))

    def thread_state(self, flat: Callable[..., Any], returns_all: bool = False) -> Callable[..., Any]:
        """Return ``flat`` with the tensors of the variables as first arguments.

        It returns those that changed as well, or all of them with ``returns_all``.
        """
        if not self.variables:
            return flat
        variables, holders, count = self.variables, self.holders, len(self.variables)

        def with_state(*natives: Any) -> Any:
            given = natives[:count]
            for variable, native in zip(variables, given, strict=True):
                variable.held = native
            for holder in holders:
                holder.begin_trace()
            result, portable = flat(*natives[count:])
            done = tuple([holder.end_trace() for holder in holders])
            held = [variable.held for variable in variables]
            changed = tuple([i for i in range(count) if returns_all or held[i] is not given[i]])
            made = [[variable.held for variable in holder.made_in_trace()] for holder in holders]
            return (result, [held[i] for i in changed], made), (portable, changed, done)

        with_state.__name__ = flat.__name__
        return with_state

    def run(self, program: Callable[..., Any], natives: list[Any]) -> tuple[Any, tuple[bool, ...]]:
        """Run a program built of a function of ``thread_state``: assign the changed variables, return the result."""
        variables = self.variables
        if not variables:
            return program(*natives)
        held = values_of(variables)
        kept = keep(variables) if selection.has_scope_here() else None  # a scope leaves variables on their backend
        if kept is not None:
            assign_all(variables, held)
        try:
            (result, new, made), (portable, changed, done) = program(*held, *natives)
        finally:  # during a trace the variables hold traced tensors
            if kept is not None:
                put_back(kept)
            elif variables[0].held is not held[0]:
                assign_all(variables, held)
        backend = active()
        for place, native in zip(changed, new, strict=True):
            variable = variables[place]
            variable.held, variable.home = native, backend
        for holder, what, values in zip(self.holders, done, made, strict=True):
            if what is not None:
                holder.after_run(what, values)
        return result, portable


_NOTHING = State((), [], None)


def find_holders(function: Any) -> list[Holder]:
    """Return the holders that a function is, is a method of, or closes over, also through functions."""
    found: list[Holder] = []
    seen: set[int] = set()
    stack = [function]
    while stack:
        x = stack.pop()
        if id(x) in seen:
            continue
        seen.add(id(x))
        if isinstance(x, Holder):
            found.append(x)
        elif isinstance(x, partial):
            stack += [x.func, *x.args, *x.keywords.values()]
        elif inspect.ismethod(x):
            stack += [x.__self__, x.__func__, *_find_held(x.__self__)]
        elif isinstance(x, FunctionType):
            stack += [cell.cell_contents for cell in x.__closure__ or () if _is_filled(cell)]
            stack += [x.__globals__[name] for name in x.__code__.co_names if _is_held(x.__globals__.get(name))]
        elif hasattr(x, "__wrapped__"):
            stack.append(x.__wrapped__)
        elif type(x) in (list, tuple, dict):
            stack += [leaf for leaf in trees.flatten(x)[0] if isinstance(leaf, Holder)]
    return found


def _find_held(x: Any) -> list[Holder]:
    """Return the holders among the attributes of an object."""
    return [value for value in getattr(x, "__dict__", {}).values() if isinstance(value, Holder)]


def _is_held(x: Any) -> bool:
    return isinstance(x, Holder)


def _is_filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:  # the cell of a name that is not assigned yet
        return False
