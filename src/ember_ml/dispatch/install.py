"""Give the ops their code: at a switch for the whole process, at the first scope of a kind beside it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import FunctionType
from typing import Any

from ember_ml.backend import selection
from ember_ml.backend.contract import Backend
from ember_ml.dispatch.codegen import code_for, complete_bound, install_code
from ember_ml.dispatch.declare import OPS, Op
from ember_ml.dispatch.watching import watched

__all__ = ["start", "start_op"]


def _install(backend: Backend) -> None:
    """Give every op the code for ``backend``: no reference to an op can be stale, since its function stays."""
    complete_bound()
    for op in tuple(OPS.values()):
        if not op.is_plain:
            install_code(op, backend)


def _prepare_scope(backend: Backend, key: str) -> None:
    """Make a function of every op for the scopes of ``backend`` with this key.

    All are made before the first scope: torch.compile can trace the choice among them, but not the making.
    """
    complete_bound()
    for op in tuple(OPS.values()):
        if not op.is_plain:
            _function_for(op, backend, key)


def _function_for(op: Op, backend: Backend, key: str) -> Callable[..., Any]:
    """Return the function of ``op`` for the scopes with this key, made at the first request."""
    table = op.namespace["_ON"]
    found = table.get(key)
    if found is None and key not in (backend.name, selection.key_of(backend, is_half=True)):
        found = table[key] = watched(op)
    if found is None:
        code = code_for(op, backend, is_half=key != backend.name)
        found = FunctionType(code, op.namespace, op.name, op.declaration.__defaults__)
        found.__kwdefaults__ = op.declaration.__kwdefaults__
        table[key] = functools.update_wrapper(found, op.declaration)
    return found


def start() -> None:
    """Choose a backend where none was chosen yet, and complete what waits for that."""
    selection.active()
    complete_bound()


def start_op(op: Op) -> Callable[..., Any]:
    """Return the function that computes ``op``, which was called before a backend was chosen, or declared after."""
    backend = selection.active()
    scopes = selection.scopes_here()
    if scopes:
        return _function_for(op, backend, scopes[-1].key)
    install_code(op, backend)
    return op.function


selection.on_switch(_install)
selection.on_scope(_prepare_scope)
