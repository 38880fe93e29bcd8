"""Timing that can be trusted on a busy machine: the candidates take turns, and the best of many rounds counts.

A ratio of two times measured one after the other also measures what else the machine did meanwhile. Taking turns
spreads that over all candidates, and the minimum drops it.
"""

from __future__ import annotations

import gc
from collections.abc import Mapping
from dataclasses import dataclass
from time import perf_counter
from timeit import Timer
from typing import Any

__all__ = ["Timed", "best_times"]

_SAMPLE_SECONDS = 200e-6  # long enough that reading the clock is invisible, short enough that many are undisturbed


@dataclass(frozen=True, slots=True)
class Timed:
    """One line of code to time, and the values of the names in it.

    The line is compiled into the timing loop: nothing else is measured.
    """

    code: str
    names: Mapping[str, Any]

    def timer(self) -> Timer:
        """Return a timer whose names are local variables, as they are in a user's function."""
        outer = {f"_outer_{name}": value for name, value in self.names.items()}
        setup = "; ".join(f"{name} = _outer_{name}" for name in self.names) or "pass"
        return Timer(self.code, setup, globals=outer)


def best_times(candidates: Mapping[str, Timed], seconds: float = 0.2, least_rounds: int = 5) -> dict[str, float]:
    """Return the least time in seconds of one run of each candidate, measured in turns for about ``seconds``.

    >>> times = best_times({"add": Timed("a + b", {"a": 1, "b": 2}), "sum": Timed("sum(a)", {"a": range(999)})}, 0.01)
    >>> times["add"] < times["sum"]
    True
    """
    timers = {name: timed.timer() for name, timed in candidates.items()}
    counts = {name: _calls_per_sample(timer) for name, timer in timers.items()}
    best = dict.fromkeys(timers, float("inf"))
    collecting = gc.isenabled()
    gc.disable()
    try:
        end = perf_counter() + seconds
        rounds = 0
        while rounds < least_rounds or perf_counter() < end:
            for name, timer in timers.items():
                best[name] = min(best[name], timer.timeit(counts[name]) / counts[name])
            rounds += 1
    finally:
        if collecting:
            gc.enable()
    return best


def _calls_per_sample(timer: Timer) -> int:
    """Return how many calls fill one sample; the first call, which may load or compile something, does not count."""
    timer.timeit(1)
    count = 1
    while (taken := timer.timeit(count)) < _SAMPLE_SECONDS:
        count = max(2 * count, min(int(count * _SAMPLE_SECONDS / max(taken, 1e-9)), 100 * count))
    return count
