"""Give the ops their code: at a switch for the whole process, at the first scope of a backend beside it."""

from __future__ import annotations

import functools
from types import FunctionType

from ember_ml.backend import selection
from ember_ml.backend.contract import Backend
from ember_ml.dispatch.codegen import code_for, complete_bound, install_code
from ember_ml.dispatch.declare import OPS, Op

__all__ = ["start", "start_op"]


def _install(backend: Backend) -> None:
    """Give every op the code for ``backend``: no reference to an op can be stale, since its function stays."""
    complete_bound()
    for op in tuple(OPS.values()):
        if not op.is_plain:
            install_code(op, backend)


def _prepare_scope(backend: Backend) -> None:
    """Make a function of every op for ``backend``, which serves the calls inside its scopes.

    All are made before the first scope: torch.compile can trace the choice among them, but not the making.
    """
    complete_bound()
    for op in tuple(OPS.values()):
        if not op.is_plain:
            _function_on(op, backend)


def _function_on(op: Op, backend: Backend) -> FunctionType:
    """Return the function of ``op`` for the scopes of ``backend``, made at the first request."""
    table = op.namespace["_ON"]
    found = table.get(backend.name)
    if found is None:
        found = FunctionType(code_for(op, backend), op.namespace, op.name, op.declaration.__defaults__)
        found.__kwdefaults__ = op.declaration.__kwdefaults__
        table[backend.name] = functools.update_wrapper(found, op.declaration)
    return found


def start() -> None:
    """Choose a backend where none was chosen yet, and complete what waits for that."""
    selection.active()
    complete_bound()


def start_op(op: Op) -> FunctionType:
    """Return the function that computes ``op``, which was called before a backend was chosen, or declared after."""
    backend = selection.active()
    if selection.has_scope_here():
        return _function_on(op, backend)
    install_code(op, backend)
    return op.function


selection.on_switch(_install)
selection.on_scope(_prepare_scope)
