"""Delay Ctrl-C until a training step or checkpoint is whole."""

from __future__ import annotations

import signal
import threading
from typing import Any, Self

__all__ = ["Interrupts"]


class Interrupts:
    """A block in which Ctrl-C waits for the end of what must not be left half done; a second Ctrl-C does not wait.

    What must be whole stands in ``with interrupts.held:``. Where the program handles Ctrl-C in its own way, or the
    block is not in the main thread, nothing is changed.
    """

    held: Any
    is_waiting: bool

    def __init__(self) -> None:
        self.is_held = self.is_waiting = self._is_ours = False
        self.held = _Held(self)

    def __enter__(self) -> Self:
        is_main = threading.current_thread() is threading.main_thread()
        self._is_ours = is_main and signal.getsignal(signal.SIGINT) is signal.default_int_handler
        if self._is_ours:
            signal.signal(signal.SIGINT, self._handle)
        return self

    def __exit__(self, *exception: object) -> None:
        if self._is_ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def _handle(self, number: int, frame: Any) -> None:
        if self.is_held and not self.is_waiting:
            self.is_waiting = True
        else:
            self.is_waiting = False
            raise KeyboardInterrupt


class _Held:
    def __init__(self, interrupts: Interrupts) -> None:
        self._of = interrupts
        self._depth = 0

    def __enter__(self) -> None:
        self._depth += 1
        self._of.is_held = True

    def __exit__(self, *exception: object) -> None:
        self._depth -= 1
        self._of.is_held = self._depth > 0
        if self._of.is_waiting and not self._of.is_held:
            self._of.is_waiting = False
            raise KeyboardInterrupt
