"""Watch the ops: inside a block each call is handed to a function, which may look at arguments and result.

Such a block is a scope, as ``autocast`` is: while none is open, an op does not even ask.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ember_ml.backend import selection
from ember_ml.core.dtypes import EmberDType
from ember_ml.dispatch.declare import Op
from ember_ml.dispatch.scopes import InnerScope

__all__ = ["watch_ops", "watched"]


class watch_ops(InnerScope):
    """Hand each op that is called inside the block to ``watcher``, for this thread or task; None ends that.

    ``watcher(op, function, args, kwargs)`` returns the result, by ``function(*args, **kwargs)``. What the op, its
    gradient or the watcher itself calls is not watched. Functions that are compiled otherwise run as they are. The
    operators of tensors are no ops here, unless the tensors are recorded.
    """

    half: EmberDType | None
    watcher: selection.Watcher | None

    def __init__(self, watcher: selection.Watcher | None) -> None:
        self.watcher = watcher

    def _recreate_cm(self) -> watch_ops:
        return watch_ops(self.watcher)

    def keep(self, outer: selection.Scope | None) -> None:
        self.half = None if outer is None else outer.half


def watched(op: Op) -> Callable[..., Any]:
    """Return the function of ``op`` for the inside of such blocks."""

    def call(*args: Any, **kwargs: Any) -> Any:
        watcher = selection.watcher_here()
        assert watcher is not None  # otherwise the op would not have come here
        with watch_ops(None):
            return watcher(op, op.function, args, kwargs)

    return call
