"""Find the modules and optimizers that a function captures, and pass their tensors to the compiled program."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from operator import attrgetter
from types import FunctionType
from typing import Any, Protocol

from ember_ml.backend import selection
from ember_ml.backend.contract import Backend
from ember_ml.core import trees
from ember_ml.tensor.variable import Loan, Variable, assign_all, keep, put_back, settle, values_of
from ember_ml.transforms import change_counter

__all__ = ["Holder", "State", "find_holders"]

_HELD = attrgetter("held")


class Watched(Protocol):
    """Something as it was at one time, which may have changed since."""

    def is_current(self) -> bool:
        """Return whether it is as it was."""
        ...


class Renewed(Protocol):
    """A variable that has another value at each call of a program, which does not change it."""

    variable: Variable
    """Holds the value while a function is traced."""

    def take(self, backend: Backend) -> Any:
        """Return the value for the next call, native to ``backend``."""
        ...


class Holder:
    """Something that holds variables: a module, an optimizer."""

    def held(self) -> tuple[list[Variable], Hashable] | None:
        """Return the variables that a function may read or change, and a key of what else a program depends on.

        None while the variables are not all made. ``change_counter`` counts what makes a call return something else,
        but for changes of what :meth:`uncounted` returns.
        """
        raise NotImplementedError

    def uncounted(self) -> Sequence[Watched]:
        """Return what may change without being counted, and must be asked before each call."""
        return ()

    def renewed(self, variables: Sequence[Variable]) -> Renewed | None:
        """Return the variable that has another value at each call of a function which uses ``variables``, if any."""
        return None

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
    """The variables of the holders that a compiled function uses."""

    __slots__ = ("_loan", "holders", "key", "renewed", "uncounted", "variables", "version")

    holders: Sequence[Holder]
    key: Hashable
    renewed: Sequence[Renewed]
    uncounted: Sequence[Watched]
    variables: list[Variable]
    version: int | None
    """What ``change_counter`` said when the holders were asked; None where there are none, and nothing can change."""

    def __init__(
        self, holders: Sequence[Holder], found: Sequence[tuple[list[Variable], Hashable]], version: int | None
    ) -> None:
        self.holders, self.version = holders, version
        self.uncounted = [watched for holder in holders for watched in holder.uncounted()]
        # the same parameter may be found in several modules
        self.variables = list(dict.fromkeys([variable for variables, _ in found for variable in variables]))
        self.renewed = [renewed for holder in holders if (renewed := holder.renewed(self.variables)) is not None]
        self._loan: Loan | None = None
        self.key = (tuple([key for _, key in found]), len(self.variables))

    @classmethod
    def of(cls, holders: Sequence[Holder]) -> State | None:
        """Return the state of ``holders``; None where one of them has not made its variables yet."""
        if not holders:
            return _NOTHING
        version = change_counter.count
        found: list[Any] = [holder.held() for holder in holders]
        return None if None in found else cls(holders, found, version)

    def thread_state(self, flat: Callable[..., Any], returns_all: bool = False) -> Callable[..., Any]:
        """Return ``flat`` with the tensors of the variables, and of those that are renewed, as first arguments.

        Besides the result it returns the tensors of the variables that changed, or of all with ``returns_all``, and of
        those that it made.
        """
        if not self.variables:
            return flat
        variables, holders, count = self.variables, self.holders, len(self.variables)
        taken = [*variables, *[renewed.variable for renewed in self.renewed]]
        start = len(taken)

        def with_state(*natives: Any) -> Any:
            given = natives[:count]
            if returns_all:
                settle(taken)
            for variable, native in zip(taken, natives[:start], strict=True):
                variable.held = native
            for holder in holders:
                holder.begin_trace()
            result, _, portable = flat(*natives[start:])
            held = [variable.held for variable in variables]
            changed = None if returns_all else tuple([i for i in range(count) if held[i] is not given[i]])
            others, done = held if changed is None else [held[i] for i in changed], []
            for place, holder in enumerate(holders):
                what, before = holder.end_trace(), len(others)
                others += [variable.held for variable in holder.made_in_trace()]
                if what is not None:
                    done.append((place, what, before, len(others)))
            return result, others, (portable, changed, tuple(done))

        with_state.__name__ = flat.__name__
        return with_state

    # the fewer functions and objects a call touches, the sooner a short program begins: the caches hold its data
    def run(self, program: Callable[..., Any], natives: Sequence[Any], backend: Backend) -> tuple[Any, Any]:
        """Run a program built of a function of ``thread_state``: assign the changed variables, return the result."""
        variables = self.variables
        if not variables:
            result, _, portable = program(variables, natives)
            return result, portable
        held, kept, values = [*map(_HELD, variables)], None, []
        if selection.has_scopes or [*map(type, held)].count(backend.tensor_type) != len(held):
            held = values_of(variables)
            if selection.has_scope_here():  # a scope leaves variables on their backend
                kept = keep(variables)
                assign_all(variables, held)
        for renewed in self.renewed:
            values += (renewed.take(backend),)
        try:
            result, new, (portable, changed, done) = program(held, [*values, *natives])
        finally:  # during a trace the variables hold traced tensors
            if kept is not None:
                put_back(kept)
            elif variables[0].held is not held[0]:
                assign_all(variables, held)
                assign_all([renewed.variable for renewed in self.renewed], values)
        if changed is not None:
            variables = [variables[place] for place in changed]
        if kept is not None:
            assign_all(variables, new[: len(variables)])
        else:  # they are at home here
            for variable, native in zip(variables, new, strict=False):  # after which come those that the program made
                variable.held = native
        for place, what, start, end in done:
            self.holders[place].after_run(what, new[start:end])
        return result, portable

    def run_again(
        self, program: Callable[..., Any], natives: Sequence[Any], backend: Backend, direct: Any
    ) -> tuple[Any, Any]:
        """Run a program that returns the tensors of all variables, which it has lent from then on.

        ``direct`` is how it is called with less work, if there is a way.
        """
        loan = self._loan
        if loan is None or loan.values is None or selection.has_scopes:
            result = self.run(program, natives, backend)
            if self.variables and not selection.has_scopes:
                self._loan = loan or Loan(self.variables, backend)
                self._loan.open(self.variables)
            return result
        held, values = loan.values, []
        for renewed in self.renewed:
            values += (renewed.take(backend),)
        try:
            if direct is None:
                result, new, (portable, _, done) = program(held, [*values, *natives])
            else:
                function, (portable, _, done) = direct
                result, new = function(held, [*values, *natives], None)
        except BaseException:
            self._settle(loan, held, values)
            raise
        if loan.values is held and len(new) == len(held):
            loan.values = new
        else:  # somebody has asked for a variable, or the program was traced anew, with traced tensors in the variables
            self._settle(loan, new[: len(held)], values)
        for place, what, start, end in done:
            self.holders[place].after_run(what, new[start:end])
        return result, portable

    def _settle(self, loan: Loan, natives: Sequence[Any], values: Sequence[Any]) -> None:
        loan.close()
        assign_all(self.variables, natives)
        assign_all([renewed.variable for renewed in self.renewed], values)


_NOTHING = State((), (), None)


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
