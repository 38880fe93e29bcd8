"""Watch the ops: inside a block each call is handed to a function, which may look at arguments and result.

Such a block is a scope, as ``autocast`` is: while none is open, an op does not even ask.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ContextDecorator
from typing import Any

from ember_ml.backend import selection
from ember_ml.backend.contract import Backend
from ember_ml.core.dtypes import EmberDType
from ember_ml.dispatch.declare import Op

__all__ = ["watch_ops", "watched"]


class watch_ops(ContextDecorator):
    """Hand each op that is called inside the block to ``watcher``, for this thread or task; None ends that.

    ``watcher(op, function, args, kwargs)`` returns the result, by ``function(*args, **kwargs)``. What the op, its
    gradient or the watcher itself calls is not watched. Functions that are compiled otherwise run as they are. The
    operators of tensors are no ops here, unless the tensors are recorded.
    """

    chosen: Backend | None
    half: EmberDType | None
    watcher: selection.Watcher | None

    def __init__(self, watcher: selection.Watcher | None) -> None:
        self.watcher = watcher

    def _recreate_cm(self) -> watch_ops:
        return watch_ops(self.watcher)

    @property
    def backend(self) -> Backend:
        """The module of the backend that computes inside the block."""
        found = selection._process if self.chosen is None else self.chosen
        assert found is not None  # the block began by asking for it
        return found

    @property
    def target(self) -> Backend | None:
        """The backend whose usual code serves the block."""
        return self.backend if self.half is None and self.watcher is None else None

    @property
    def key(self) -> str:
        """The name under which ops have their functions for the block."""
        if self.watcher is not None:
            return selection.watched_key(self.backend)
        return selection.key_of(self.backend, self.half is not None)

    def __enter__(self) -> None:
        selection.active()  # chosen now, if it is not yet
        scopes = selection.scopes_here()
        self.chosen, self.half = (scopes[-1].chosen, scopes[-1].half) if scopes else (None, None)
        selection.open_scope(self)

    def __exit__(self, *error: object) -> None:
        selection.close_scope(self)


def watched(op: Op) -> Callable[..., Any]:
    """Return the function of ``op`` for the inside of such blocks."""

    def call(*args: Any, **kwargs: Any) -> Any:
        watcher = selection.watcher_here()
        assert watcher is not None  # otherwise the op would not have come here
        with watch_ops(None):
            return watcher(op, op.function, args, kwargs)

    return call
