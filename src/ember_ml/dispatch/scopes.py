"""What the scopes have in common that set how ops compute, and not on which backend."""

from __future__ import annotations

from contextlib import ContextDecorator

from ember_ml.backend import selection
from ember_ml.backend.contract import Backend
from ember_ml.core.dtypes import EmberDType

__all__ = ["InnerScope"]


class InnerScope(ContextDecorator):
    """A block that keeps the backend around it, for this thread or task; a switch of the process may change that."""

    chosen: Backend | None
    half: EmberDType | None
    watcher: selection.Watcher | None

    @property
    def backend(self) -> Backend:
        """The module of the backend that computes inside the block."""
        found = selection._process if self.chosen is None else self.chosen
        assert found is not None  # the block began by asking for it
        return found

    @property
    def target(self) -> Backend | None:
        """The backend whose usual code serves the block, if it does."""
        return self.backend if self.half is None and self.watcher is None else None

    @property
    def key(self) -> str:
        """The name under which ops have their functions for the block."""
        if self.watcher is not None:
            return selection.watched_key(self.backend)
        return selection.key_of(self.backend, self.half is not None)

    def keep(self, outer: selection.Scope | None) -> None:
        """Take over from the scope around the block what the block itself does not set."""
        raise NotImplementedError

    def __enter__(self) -> None:
        selection.active()  # chosen now, if it is not yet
        scopes = selection.scopes_here()
        outer = scopes[-1] if scopes else None
        self.chosen = None if outer is None else outer.chosen
        self.keep(outer)
        selection.open_scope(self)

    def __exit__(self, *error: object) -> None:
        selection.close_scope(self)
