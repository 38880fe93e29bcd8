"""Prefetching: a thread makes the items of an iterator ahead of the consumer."""

from __future__ import annotations

import contextvars
import threading
from collections import deque
from collections.abc import Generator, Iterator
from typing import Any

__all__ = ["prefetch_items"]

_PATIENCE = 5.0  # seconds to wait for the thread's last item when the consumer leaves early


def prefetch_items(items: Iterator[Any], depth: int) -> Generator[Any, None, None]:
    """Yield the items, of which up to ``depth`` are made ahead by a thread, in the context of the caller.

    An exception in the iterator is raised where its item would have been taken, with its own traceback. The thread ends
    with the iterator, or, when the consumer leaves early, after the item that it is making.

    >>> from ember_ml.training.prefetching import prefetch_items
    >>> list(prefetch_items(iter(range(5)), 2))
    [0, 1, 2, 3, 4]
    """
    shelf = _Shelf(depth)
    context = contextvars.copy_context()
    thread = threading.Thread(target=context.run, args=(shelf.fill, items), name="ember-ml prefetch", daemon=True)
    thread.start()
    try:
        while True:
            item, error, is_end = shelf.take()
            if error is not None:
                try:
                    raise error
                finally:
                    error = None  # whose traceback has this frame, which would keep what the loop has used
            if is_end:
                return
            yield item
            del item  # the consumer alone decides how long it lives
    finally:
        shelf.close()
        thread.join(_PATIENCE)


class _Shelf:
    """A bounded queue between the thread and the consumer."""

    def __init__(self, depth: int) -> None:
        self._depth = depth
        self._items: deque[tuple[Any, BaseException | None, bool]] = deque()
        self._changed = threading.Condition()
        self._is_closed = False

    def fill(self, items: Iterator[Any]) -> None:
        """Put all items, then the end, or the exception that ended them."""
        try:
            for item in items:
                if not self._put((item, None, False)):
                    break
        except BaseException as error:  # any exception is passed on to the consumer
            self._put((None, error, False))
        else:
            self._put((None, None, True))
        finally:
            close = getattr(items, "close", None)
            if close is not None:
                close()

    def _put(self, item: tuple[Any, BaseException | None, bool]) -> bool:
        """Wait for a free place and put the item; False where nobody takes any more."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_closed or len(self._items) < self._depth)
            if not self._is_closed:
                self._items.append(item)
                self._changed.notify_all()
            return not self._is_closed

    def take(self) -> tuple[Any, BaseException | None, bool]:
        with self._changed:
            self._changed.wait_for(lambda: self._items)
            item = self._items.popleft()
            self._changed.notify_all()
            return item

    def close(self) -> None:
        with self._changed:
            self._is_closed = True
            self._items.clear()
            self._changed.notify_all()
