"""Threads that share the work of one large draw: NumPy computes outside of the interpreter's lock.

They are started for a draw and end with it, so that none is there when a process forks.
"""

from __future__ import annotations

import _thread
import contextvars
import os
import sys
from collections.abc import Callable
from functools import cache

__all__ = ["run_in_threads", "thread_limit"]

_MOST = 4  # beyond it they would mostly wait for the lock between NumPy's calls


@cache
def thread_limit() -> int:
    """Return how many threads a draw may use: ``OMP_NUM_THREADS``, which NumPy and PyTorch follow too, else the cores.

    It is read once. Launchers of several processes on a machine set it, so that they share the cores.
    """
    asked = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    if asked.isdecimal() and int(asked):
        return min(int(asked), _MOST)
    return min(len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1, _MOST)


def run_in_threads(work: Callable[[], None], threads: int) -> None:
    """Call ``work`` in so many threads at once, this one among them; it takes what is left to do until there is none.

    The threads see the context of this one, such as NumPy's handling of errors. An error in any of them is raised here.
    """
    errors: list[BaseException] = []

    def guarded(context: contextvars.Context, is_running: _thread.LockType) -> None:
        try:
            context.run(work)
        except BaseException as error:
            errors.append(error)
        finally:
            is_running.release()

    started: list[_thread.LockType] = []
    try:
        for _ in range(threads - 1):
            is_running = _thread.allocate_lock()
            is_running.acquire()
            # threading.Thread would wait until it runs: a twentieth of the time of 200,000 numbers
            _thread.start_new_thread(guarded, (contextvars.copy_context(), is_running))
            started.append(is_running)
    except RuntimeError:
        pass  # the system gives no more threads, or the interpreter is ending: the others do all of the work
    try:
        work()
    finally:
        for is_running in started:
            is_running.acquire()
    if errors:
        raise errors[0]
