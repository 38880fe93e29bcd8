"""Schedules: learning rates as functions of the step, the number of updates before this one.

They are pure: the same step gives the same rate, whenever it is asked for, so that nothing of them needs to be saved.
Where a schedule has an end, the rate stays there. ``Warmup`` goes before any other.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass, fields
from typing import Any

from ember_ml.config.registry import config_of, register

__all__ = [
    "Constant",
    "Cosine",
    "CosineRestarts",
    "Exponential",
    "InverseSquareRoot",
    "OneCycle",
    "Piecewise",
    "Polynomial",
    "Schedule",
    "StepDecay",
    "Warmup",
]

_COUNTS = ("steps", "every")


@dataclass(frozen=True)
class Schedule:
    """The base class of schedules; a subclass, which may be a dataclass, defines ``at``."""

    def at(self, step: int) -> float:
        """Return the rate at a step from 0 up."""
        raise NotImplementedError(f"{type(self).__name__} does not define at")

    def __call__(self, step: int) -> float:
        """Return the rate at ``step``, which is counted from 0."""
        if step < 0:
            raise ValueError(f"steps are counted from 0 up, and this one is {step}")
        return self.at(step)

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name in _COUNTS and not (isinstance(value, int) and value > 0):
                raise ValueError(f"{field.name} is a number of steps, at least 1, and not {value!r}")
            if isinstance(value, int | float) and not (math.isfinite(value) and value >= 0):
                raise ValueError(f"{field.name} is a finite number from 0 up, and not {value!r}")

    def config(self) -> dict[str, Any]:
        """Return the schedule as plain data, from which ``registry.build`` makes it again."""
        return config_of(self)


@register("schedules/constant")
@dataclass(frozen=True)
class Constant(Schedule):
    """Always ``rate``.

    >>> from ember_ml.training import schedules
    >>> schedules.Constant(0.5)(1000)
    0.5
    """

    rate: float

    def at(self, step: int) -> float:
        return self.rate


@register("schedules/step_decay")
@dataclass(frozen=True)
class StepDecay(Schedule):
    """``rate * factor**(step // every)``: every ``every`` steps the rate falls to a fraction.

    >>> from ember_ml.training import schedules
    >>> [schedules.StepDecay(8.0, every=2, factor=0.5)(step) for step in range(5)]
    [8.0, 8.0, 4.0, 4.0, 2.0]
    """

    rate: float
    every: int
    factor: float = 0.1

    def at(self, step: int) -> float:
        return self.rate * self.factor ** (step // self.every)


@register("schedules/exponential")
@dataclass(frozen=True)
class Exponential(Schedule):
    """``rate * factor**(step / every)``: the rate falls evenly, by ``factor`` in ``every`` steps.

    >>> from ember_ml.training import schedules
    >>> schedules.Exponential(8.0, factor=0.25, every=2)(1)
    4.0
    """

    rate: float
    factor: float
    every: int = 1

    def at(self, step: int) -> float:
        return self.rate * self.factor ** (step / self.every)


@register("schedules/polynomial")
@dataclass(frozen=True)
class Polynomial(Schedule):
    """``end + (rate - end) * (1 - step / steps)**power``: a straight line where ``power`` is 1.

    >>> from ember_ml.training import schedules
    >>> [schedules.Polynomial(1.0, steps=4)(step) for step in (0, 1, 4, 9)]
    [1.0, 0.75, 0.0, 0.0]
    """

    rate: float
    steps: int
    end: float = 0.0
    power: float = 1.0

    def at(self, step: int) -> float:
        return self.end + (self.rate - self.end) * (1 - min(step, self.steps) / self.steps) ** self.power


@register("schedules/cosine")
@dataclass(frozen=True)
class Cosine(Schedule):
    """``end + (rate - end) * (1 + cos(pi * step / steps)) / 2``: half a wave down.

    >>> from ember_ml.training import schedules
    >>> [round(schedules.Cosine(1.0, steps=4)(step), 4) for step in (0, 1, 2, 4)]
    [1.0, 0.8536, 0.5, 0.0]
    """

    rate: float
    steps: int
    end: float = 0.0

    def at(self, step: int) -> float:
        return _half_wave(self.rate, self.end, min(step / self.steps, 1.0))


@register("schedules/cosine_restarts")
@dataclass(frozen=True)
class CosineRestarts(Schedule):
    """Half waves down, one after the other: the first has ``steps`` steps, and each is ``growth`` times as long.

    Each starts at ``decay`` times the height of the one before.

    >>> from ember_ml.training import schedules
    >>> [round(schedules.CosineRestarts(1.0, steps=2, growth=2.0, decay=0.5)(step), 4) for step in range(6)]
    [1.0, 0.5, 0.5, 0.4268, 0.25, 0.0732]
    """

    rate: float
    steps: int
    growth: float = 1.0
    decay: float = 1.0
    end: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.growth < 1:
            raise ValueError(f"growth is at least 1, and not {self.growth!r}")

    def at(self, step: int) -> float:
        if self.growth == 1:
            wave, left = divmod(step, self.steps)
            return _half_wave(self.rate * self.decay**wave, self.end, left / self.steps)
        # the waves before number n have together steps * (growth**n - 1) / (growth - 1) steps
        wave = int(math.log1p(step / self.steps * (self.growth - 1)) / math.log(self.growth))
        wave += self._start(wave + 1) <= step  # the logarithm may be rounded down
        wave -= self._start(wave) > step
        done = (step - self._start(wave)) / (self.steps * self.growth**wave)
        return _half_wave(self.rate * self.decay**wave, self.end, done)

    def _start(self, wave: int) -> float:
        return self.steps * (self.growth**wave - 1) / (self.growth - 1)


@register("schedules/one_cycle")
@dataclass(frozen=True)
class OneCycle(Schedule):
    """Half a wave up to ``peak`` in the first ``rise`` of all ``steps``, then half a wave down.

    It starts at ``peak / start_divisor`` and ends at that over ``end_divisor``.

    >>> from ember_ml.training import schedules
    >>> schedule = schedules.OneCycle(1.0, steps=10, rise=0.3)
    >>> [round(schedule(step), 6) for step in (0, 3, 10)]
    [0.04, 1.0, 4e-06]
    """

    peak: float
    steps: int
    rise: float = 0.3
    start_divisor: float = 25.0
    end_divisor: float = 1e4

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.rise < 1:
            raise ValueError(f"rise is a share of the steps between 0 and 1, and not {self.rise!r}")
        if not (self.start_divisor and self.end_divisor):
            raise ValueError("the divisors are not 0")

    def at(self, step: int) -> float:
        done, start = min(step / self.steps, 1.0), self.peak / self.start_divisor
        if done < self.rise:
            return _half_wave(start, self.peak, done / self.rise)
        return _half_wave(self.peak, start / self.end_divisor, (done - self.rise) / (1 - self.rise))


@register("schedules/piecewise")
@dataclass(frozen=True)
class Piecewise(Schedule):
    """``rates[0]`` before the step ``boundaries[0]``, ``rates[1]`` from there on, and so forth.

    >>> from ember_ml.training import schedules
    >>> [schedules.Piecewise([2, 3], [1.0, 0.5, 0.1])(step) for step in range(5)]
    [1.0, 1.0, 0.5, 0.1, 0.1]
    """

    boundaries: tuple[int, ...]
    rates: tuple[float, ...]

    def __post_init__(self) -> None:
        for name in ("boundaries", "rates"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        if len(self.rates) != len(self.boundaries) + 1:
            raise ValueError(f"{len(self.boundaries)} boundaries separate one rate more, and not {len(self.rates)}")
        if list(self.boundaries) != sorted({*self.boundaries}) or any(step < 0 for step in self.boundaries):
            raise ValueError(f"boundaries are steps from 0 up in ascending order, and not {self.boundaries}")
        if not all(math.isfinite(rate) and rate >= 0 for rate in self.rates):
            raise ValueError(f"rates are finite numbers from 0 up, and not {self.rates}")

    def at(self, step: int) -> float:
        return float(self.rates[bisect_right(self.boundaries, step)])


@register("schedules/inverse_square_root")
@dataclass(frozen=True)
class InverseSquareRoot(Schedule):
    """``rate`` for ``steps`` steps, then ``rate * sqrt(steps / step)``.

    >>> from ember_ml.training import schedules
    >>> [schedules.InverseSquareRoot(1.0, steps=4)(step) for step in (0, 4, 16)]
    [1.0, 1.0, 0.5]
    """

    rate: float
    steps: int

    def at(self, step: int) -> float:
        return self.rate * math.sqrt(self.steps / max(step, self.steps))


@register("schedules/warmup")
@dataclass(frozen=True)
class Warmup(Schedule):
    """A straight line from ``start`` to the first rate of ``then`` in ``steps`` steps, and after it ``then``.

    >>> from ember_ml.training import schedules
    >>> schedule = schedules.Warmup(2, schedules.StepDecay(1.0, every=1, factor=0.5))
    >>> [schedule(step) for step in range(5)]
    [0.0, 0.5, 1.0, 0.5, 0.25]
    """

    steps: int
    then: Schedule | float
    start: float = 0.0

    def at(self, step: int) -> float:
        if step >= self.steps:
            return self._then(step - self.steps)
        return self.start + (self._then(0) - self.start) * (step / self.steps)

    def _then(self, step: int) -> float:
        return float(self.then(step)) if callable(self.then) else self.then


def _half_wave(start: float, end: float, done: float) -> float:
    """Interpolate from ``start`` to ``end`` along half a cosine wave; ``done`` is the part of it that is over."""
    return end + (start - end) * (1 + math.cos(math.pi * done)) / 2
