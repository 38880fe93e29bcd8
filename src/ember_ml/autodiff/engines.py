"""Which engine differentiates a function: the backend's own, or the tape; and how it is run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from functools import cache
from typing import Any

from ember_ml.autodiff import tape
from ember_ml.autodiff.tape_engine import TapeEngine
from ember_ml.backend import selection
from ember_ml.backend.capabilities import Engine
from ember_ml.backend.contract import Backend
from ember_ml.core import trees
from ember_ml.core.dtypes import EmberDType
from ember_ml.dispatch.autocast import autocast
from ember_ml.dispatch.watching import watch_ops
from ember_ml.tensor.var import Var

__all__ = ["run", "while_on"]

_tape_engine = cache(TapeEngine)


class _Recorded(Exception):
    """A function returned values of the tape, which the library's own engine does not know."""


def run(method: str, flat: Callable[..., Any], backend: Backend, natives: Sequence[Any], *rest: Any) -> Any:
    """Call ``method`` of the engine that differentiates by ``natives`` on ``flat``, a function of those.

    It is the backend's own engine where nothing is on the tape, else the tape. Without any tensors it is the tape too:
    libraries refuse to differentiate by nothing.
    """
    # of the function's ops; those of the backward pass are none of them
    watcher = selection.watcher_here() if selection.has_scopes else None
    if watcher is not None:
        flat = watch_ops(watcher)(flat)
        with watch_ops(None):
            return run(method, flat, backend, natives, *rest)
    own: Engine | None = backend.gradients if natives else None
    if own is not None:
        for x in natives:
            if type(x) is Var:
                own = None
    if own is None:
        return getattr(_tape_engine(backend), method)(flat, natives, *rest)
    if backend.name not in tape.live_on or own.variable is not None:
        return getattr(own, method)(flat, natives, *rest)

    def checked(*variables: Any) -> Any:
        results = flat(*variables)
        if any(type(x) is Var for x in trees.flatten(results)[0]):
            raise _Recorded
        return results

    try:
        return getattr(own, method)(checked, natives, *rest)
    except _Recorded:  # it closes over variables of backward()
        return getattr(_tape_engine(backend), method)(flat, natives, *rest)


def while_on(backend: Backend, half: EmberDType | None = None) -> AbstractContextManager[Any]:
    """Return a block in which ``backend`` is the active one, with autocast to ``half`` or without.

    What runs later must run where the first part ran, and in the dtypes of that.
    """
    if selection.is_active(backend):
        return nullcontext() if selection.half_here() is half else autocast(half)
    blocks = ExitStack()
    blocks.enter_context(selection.use_backend(backend.name))
    blocks.enter_context(autocast(half))
    return blocks
