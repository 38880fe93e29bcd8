"""Stop training after a step that all processes share when the system asks the program to end."""

from __future__ import annotations

import signal
import threading
import time
from typing import Any, Self

from ember_ml import ops
from ember_ml.distributed import collectives, heartbeat

__all__ = ["Termination"]

_SECONDS = 0.5  # between two exchanges of the processes
_MOST_STEPS = 1000


class Termination:
    """A block in which ``SIGTERM`` is noted instead of ending the process.

    Schedulers send it some time before they kill a program. Processes that train together exchange about twice a second
    whether one of them was asked to end, and so all stop after the same step; and whether one could not write its part
    of a checkpoint, so that all raise after the same step. Where the program handles ``SIGTERM`` in
    its own way, or the block is not in the main thread, this process notes nothing; it still learns of the others.

    Args:
        strategy: The strategy of the processes; None for one process.
        is_wanted: Whether there is anything to do before the end; without it nothing is changed.
        steps: The number of steps done so far.
    """

    has_failed: bool
    """Whether a process could not write a checkpoint."""
    is_due: bool

    def __init__(self, strategy: Any, is_wanted: bool, steps: int) -> None:
        self.is_due = self.has_failed = False
        self._is_wanted, self._is_asked, self._is_ours = is_wanted, False, False
        self._is_shared = strategy is not None and strategy.world_size > 1
        self._last, self._next, self._since = steps, steps + 1, time.monotonic()

    def __enter__(self) -> Self:
        is_main = threading.current_thread() is threading.main_thread()
        self._is_ours = self._is_wanted and is_main and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
        if self._is_ours:
            signal.signal(signal.SIGTERM, self._handle)
        return self

    def __exit__(self, *exception: object) -> None:
        if self._is_ours:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)

    def _handle(self, number: int, frame: Any) -> None:
        self._is_asked = True
        heartbeat.announce_stop()

    def check(self, steps: int, has_failed: bool) -> bool:
        """Return whether training must stop after this step; every process calls this after every step.

        ``has_failed`` tells whether this one could not write a checkpoint.
        """
        if not self._is_wanted:
            return False
        if not self._is_shared:
            self.is_due, self.has_failed = self._is_asked, has_failed
        elif steps >= self._next:
            self.is_due, self.has_failed = self._exchange(steps, has_failed)
        return self.is_due

    def _exchange(self, steps: int, has_failed: bool) -> tuple[bool, bool]:
        now = time.monotonic()
        own = [float(self._is_asked), float(has_failed), (now - self._since) / (steps - self._last)]
        asked, failed, seconds = ops.to_numpy(collectives.all_reduce(ops.asarray(own, dtype="float32"), "max")).tolist()
        # the slowest pace, which is the same number everywhere, decides when all meet again
        self._last, self._since = steps, now
        self._next = steps + max(1, min(_MOST_STEPS, int(_SECONDS / max(seconds, 1e-9))))
        return bool(asked), bool(failed)
