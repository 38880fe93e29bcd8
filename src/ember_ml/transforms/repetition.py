"""Compile a step that goes from one state to the next, many times: what decoders do for each token."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from ember_ml.backend.selection import active, has_scope_here
from ember_ml.tensor.variable import Variable, assign_all, keep, put_back, values_of
from ember_ml.transforms.captured_variables import Holder, State

__all__ = ["Repetition"]


class Repetition:
    """``function(state)``, which returns the next state, compiled once for each backend and shape.

    A state is a list of native tensors; the next has tensors of the same shapes and dtypes. The tensors of ``holder``,
    a module, are arguments of the program, which does not change them. Only backends with a compiler have it.
    """

    def __init__(self, function: Callable[[list[Any]], list[Any]], holder: Holder) -> None:
        self._function, self._holders = function, [holder]
        self._last: tuple[Any, list[Variable], Callable[..., Any]] | None = None

    def begin(self, state: list[Any]) -> Callable[[], list[Any]]:
        """Return a function that computes the next state at each call; a state is gone once the next is asked for."""
        backend = active()
        engine = backend.compilation
        found = State.of(self._holders)
        if engine is None or found is None:
            raise RuntimeError("a step is repeated where there is a compiler, with modules whose parameters are made")
        key, variables = (backend.name, found.key), found.variables
        last = self._last
        if last is None or last[0] != key or not all(map(operator.is_, last[1], variables)):
            # one program is kept: it may hold as much memory as the state
            self._last = last = (key, variables, engine.repeat(self._with_variables(variables)))
        begin, fixed = last[2], values_of(variables)

        def run(call: Callable[[], Any]) -> Any:
            """Call what may trace the function, during which the variables hold traced tensors."""
            kept = keep(variables) if has_scope_here() else None  # a scope leaves variables on their backend
            if kept is not None:
                assign_all(variables, fixed)
            try:
                return call()
            finally:
                if kept is not None:
                    put_back(kept)
                elif variables and variables[0].held is not fixed[0]:
                    assign_all(variables, fixed)

        advance = run(lambda: begin(fixed, state))
        return lambda: run(advance)

    def _with_variables(self, variables: list[Variable]) -> Callable[[list[Any], list[Any]], list[Any]]:
        function = self._function

        def step(fixed: list[Any], state: list[Any]) -> list[Any]:
            for variable, native in zip(variables, fixed, strict=True):
                variable.held = native
            return function(state)

        return step
