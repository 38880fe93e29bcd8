"""Which engine differentiates a function: the backend's own, or the tape; and how it is run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

from ember_ml.autodiff import tape as tapes
from ember_ml.autodiff.tape_engine import TapeEngine
from ember_ml.backend import selection as backends
from ember_ml.backend.capabilities import Engine
from ember_ml.backend.contract import Backend
from ember_ml.core import trees
from ember_ml.tensor.var import Var

__all__ = ["engine_of", "run", "while_on"]

_tape_engine = cache(TapeEngine)


def engine_of(backend: Backend, natives: Sequence[Any]) -> Engine:
    """Return what differentiates by ``natives``: the backend's own engine where nothing is on the tape, else the tape.

    Without any tensors it is the tape too: libraries refuse to differentiate by nothing.
    """
    own = backend.gradients
    if not natives or own is None:
        return _tape_engine(backend)
    for x in natives:
        if type(x) is Var:
            return _tape_engine(backend)
    return own


class _Recorded(Exception):
    """A function returned values of the tape, which the library's own engine does not know."""


def run(method: str, flat: Callable[..., Any], backend: Backend, natives: Sequence[Any], *rest: Any) -> Any:
    """Call ``method`` of the engine that differentiates by ``natives`` on ``flat``, a function of those."""
    engine = engine_of(backend, natives)
    own = backend.gradients
    records_itself = own is not None and own.variable is not None
    if backend.name not in tapes.live_on or type(engine) is TapeEngine or records_itself:
        return getattr(engine, method)(flat, natives, *rest)

    def checked(*variables: Any) -> Any:
        results = flat(*variables)
        if any(type(x) is Var for x in trees.flatten(results)[0]):
            raise _Recorded
        return results

    try:
        return getattr(engine, method)(checked, natives, *rest)
    except _Recorded:  # it closes over variables of backward()
        return getattr(_tape_engine(backend), method)(flat, natives, *rest)


def while_on(backend: Backend) -> AbstractContextManager[Any]:
    """Return a block in which ``backend`` is the active one: what runs later must run where the first part ran."""
    return nullcontext() if backends.is_active(backend) else backends.use_backend(backend.name)
