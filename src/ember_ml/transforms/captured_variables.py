"""Tensors that a compiled function reads and changes without getting them as arguments: those of its modules."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from types import FunctionType
from typing import Any

from ember_ml.backend import selection as backends
from ember_ml.backend.selection import active
from ember_ml.core import trees
from ember_ml.tensor.variable import Variable, assign_all, keep, put_back, values_of

__all__ = ["Holder", "State", "holders_in"]


class Holder:
    """Something that holds variables: a module, an optimizer."""

    def held(self) -> tuple[list[Variable], Hashable] | None:
        """The variables that a function which uses this object may read or change, and what else a program depends on.

        None while they are not all made.
        """
        raise NotImplementedError

    def trained_variables(self) -> dict[str, Variable]:
        """The variables by name that a gradient with respect to this object is about."""
        raise TypeError(f"a gradient is taken with respect to tensors and modules, not {type(self).__name__}")

    def begin_trace(self) -> None:
        """Called when a function which uses this object begins to be traced."""

    def end_trace(self) -> Any:
        """What the trace did to this object besides changing variables, as a plain value."""

    def made_in_trace(self) -> list[Variable]:
        """Return the variables that the object has made while it was traced, as the slots of an unfrozen parameter."""
        return []

    def after_run(self, done: Any, made: Sequence[Any]) -> None:
        """Do to this object, after a run of the program, what ``end_trace`` said; ``made`` are the values of the
        variables that the trace made, in their order.
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
        """The state of ``holders``; None where one of them has not made its variables yet."""
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

    def threaded(self, flat: Callable[..., Any], gives_all: bool = False) -> Callable[..., Any]:
        """``flat``, with the tensors of the variables as first arguments; it also gives those that changed, or all."""
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
            changed = tuple([i for i in range(count) if gives_all or held[i] is not given[i]])
            made = [[variable.held for variable in holder.made_in_trace()] for holder in holders]
            return (result, [held[i] for i in changed], made), (portable, changed, done)

        with_state.__name__ = flat.__name__
        return with_state

    def run(self, program: Callable[..., Any], natives: list[Any]) -> tuple[Any, tuple[bool, ...]]:
        """What a program that was built of a threaded function gives; the variables that it changes are changed."""
        variables = self.variables
        if not variables:
            return program(*natives)
        held = values_of(variables)
        kept = keep(variables) if backends.has_scope_here() else None  # in a scope, variables stay where they are
        if kept is not None:
            assign_all(variables, held)
        try:
            (result, new, made), (portable, changed, done) = program(*held, *natives)
        finally:  # while it was traced, they held tensors of the trace
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


def holders_in(function: Any) -> list[Holder]:
    """The holders that a function is, is a method of, or closes over; also through functions that it closes over."""
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
            stack += [x.__self__, x.__func__, *_held_by(x.__self__)]
        elif isinstance(x, FunctionType):
            stack += [cell.cell_contents for cell in x.__closure__ or () if _is_filled(cell)]
            stack += [x.__globals__[name] for name in x.__code__.co_names if _is_held(x.__globals__.get(name))]
        elif hasattr(x, "__wrapped__"):
            stack.append(x.__wrapped__)
        elif type(x) in (list, tuple, dict):
            stack += [leaf for leaf in trees.flatten(x)[0] if isinstance(leaf, Holder)]
    return found


def _held_by(x: Any) -> list[Holder]:
    """The holders among the attributes of an object."""
    return [value for value in getattr(x, "__dict__", {}).values() if isinstance(value, Holder)]


def _is_held(x: Any) -> bool:
    return isinstance(x, Holder)


def _is_filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:  # of a name that is not assigned yet
        return False
