"""Warning: reads MLX's graph out of the text of ``mx.export_to_dot`` with regular expressions.

It finds which arrays MLX is differentiating and which arrays depend on them. MLX has no interface for either; a change
of the text breaks this module, and the tests of recorded arrays tell.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from io import StringIO
from typing import Any

import mlx.core as mx

from ember_ml.errors import LostGradient

__all__ = ["depends", "is_recorded", "is_vectorizing", "recorded", "variables", "vectorizing"]


class _State(threading.local):
    variables: tuple[mx.array, ...] = ()
    vectorized = 0


_state = _State()
_INTO = re.compile(r'^"(\w+)" -> (\d+)$', re.MULTILINE)
_OUT_OF = re.compile(r'^(\d+) -> "(\w+)"$', re.MULTILINE)
_STOPPED = re.compile(r'^\{ (\d+) \[label ="StopGradient"', re.MULTILINE)


def variables() -> tuple[mx.array, ...]:
    """Return the variables of every gradient that this thread is computing."""
    return _state.variables


def recorded(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap ``function`` for MLX to differentiate: its arguments count as variables while it runs.

    ``LostGradient`` where a gradient around this one can no longer be computed when it has run.
    """

    def run(*arrays: mx.array) -> Any:
        before = _state.variables
        linked = _reach(arrays, before, ()) if before else []
        _state.variables = (*before, *arrays)
        try:
            result = function(*arrays)
        finally:
            _state.variables = before
        # MLX 0.32: reading a value that depends on an inner derivative detaches the variables from the gradients around
        if any(linked) and _reach(arrays, before, ()) != linked:
            raise LostGradient(
                "a value was read (by item, a condition, a check) after an inner derivative inside of two gradients, "
                "and MLX then loses the outer one: take only one gradient through this function on MLX, "
                "or compute it on another backend"
            )
        return result

    return run


@contextmanager
def vectorizing() -> Iterator[None]:
    """Open a block in which the calls are vectorized."""
    _state.vectorized += 1
    try:
        yield
    finally:
        _state.vectorized -= 1


def is_vectorizing() -> bool:
    return _state.vectorized > 0


def is_recorded(x: mx.array) -> bool:
    """Whether a gradient could flow through ``x``."""
    return bool(_state.variables) and mx.issubdtype(x.dtype, mx.inexact) and depends([x], _state.variables, ())


def depends(outputs: Sequence[mx.array], sources: Sequence[mx.array], barriers: Sequence[mx.array]) -> bool:
    """Whether a gradient flows from any of ``outputs`` to any of ``sources`` without passing one of ``barriers``."""
    return bool(sources) and any(_reach(outputs, sources, barriers))


def _reach(outputs: Sequence[mx.array], sources: Sequence[mx.array], barriers: Sequence[mx.array]) -> list[bool]:
    """For each output, whether a gradient flows from it to any of ``sources`` without passing one of ``barriers``."""
    text = StringIO()
    # MLX 0.32: prints the last name of an array only, and an output may be a source or a barrier itself
    names = {f"y{place}": mx.contiguous(y) for place, y in enumerate(outputs)}
    names |= {f"v{place}": x for place, x in enumerate(sources)}
    names |= {f"b{place}": x for place, x in enumerate(barriers)}
    mx.export_to_dot(text, **names)
    graph = text.getvalue()
    stopped = set(_STOPPED.findall(graph))
    made_by = {array: call for call, array in _OUT_OF.findall(graph) if call not in stopped}
    inputs: dict[str, list[str]] = {}
    for array, call in _INTO.findall(graph):
        inputs.setdefault(call, []).append(array)

    def is_linked(output: str) -> bool:
        pending, seen = [output], {output}
        while pending:
            for array in inputs.get(made_by.get(pending.pop(), ""), ()):
                if array[0] == "v" and array[1:].isdigit():
                    return True
                if array not in seen and not (array[0] == "b" and array[1:].isdigit()):
                    seen.add(array)
                    pending.append(array)
        return False

    return [is_linked(f"y{place}") for place in range(len(outputs))]
