"""Schedules against their formulas, computed step by step; their configurations and their checks."""

from __future__ import annotations

import math
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ember_ml import registry
from ember_ml.training import schedules

rates = st.floats(1e-6, 10.0)
counts = st.integers(1, 50)
steps = st.integers(0, 300)


@given(rates, counts, st.floats(0.1, 1.0), steps)
def test_decays(rate: float, every: int, factor: float, step: int) -> None:
    assert schedules.Constant(rate)(step) == rate
    expected = rate
    for _ in range(step // every):
        expected *= factor
    assert schedules.StepDecay(rate, every, factor)(step) == pytest.approx(expected, rel=1e-9)
    logarithm = math.log(rate) + step / every * math.log(factor)
    assert schedules.Exponential(rate, factor, every)(step) == pytest.approx(math.exp(logarithm), rel=1e-9)


@given(rates, rates, counts, st.floats(0.5, 3.0), steps)
def test_ways_from_one_rate_to_another(rate: float, end: float, count: int, power: float, step: int) -> None:
    left = max(count - step, 0) / count
    expected = rate * left**power + end * (1 - left**power)
    assert schedules.Polynomial(rate, count, end, power)(step) == pytest.approx(expected, rel=1e-9)
    share = math.sin(math.pi / 2 * left) ** 2  # (1 + cos(pi - pi left)) / 2
    expected = rate * share + end * (1 - share)
    assert schedules.Cosine(rate, count, end)(step) == pytest.approx(expected, rel=1e-9)


@given(rates, counts, st.sampled_from([1.0, 1.5, 2.0, 3.0]), st.sampled_from([1.0, 0.5]), steps)
def test_restarts(rate: float, count: int, growth: float, decay: float, step: int) -> None:
    start, length, height = 0.0, float(count), rate
    while start + length <= step:
        start, length, height = start + length, length * growth, height * decay
    expected = height * math.cos(math.pi / 2 * (step - start) / length) ** 2
    found = schedules.CosineRestarts(rate, count, growth, decay)(step)
    assert found == pytest.approx(expected, rel=1e-6, abs=1e-9)


def test_restarts_at_every_boundary() -> None:
    for growth in (1.1, 2.0, 3.0):
        for wave in range(20):
            start = 7 * (growth**wave - 1) / (growth - 1)
            found = schedules.CosineRestarts(1.0, 7, growth)(math.ceil(start - 1e-9))
            assert found == pytest.approx(1.0, abs=0.06), (growth, wave)


@given(rates, st.integers(2, 60), st.floats(0.1, 0.9), steps)
def test_one_cycle(peak: float, count: int, rise: float, step: int) -> None:
    schedule = schedules.OneCycle(peak, count, rise, 10.0, 100.0)
    done = min(step / count, 1.0)
    low, far, share = (peak / 10, peak, done / rise) if done < rise else (peak, peak / 1000, (done - rise) / (1 - rise))
    expected = low + (far - low) * math.sin(math.pi / 2 * share) ** 2
    assert schedule(step) == pytest.approx(expected, rel=1e-9)


@given(st.lists(st.integers(0, 200), unique=True, max_size=5).map(sorted), st.data())
def test_piecewise(boundaries: list[int], data: Any) -> None:
    chosen = data.draw(st.lists(rates, min_size=len(boundaries) + 1, max_size=len(boundaries) + 1))
    schedule = schedules.Piecewise(boundaries, chosen)  # type: ignore[arg-type]
    step = data.draw(steps)
    passed = sum(step >= boundary for boundary in boundaries)
    assert schedule(step) == chosen[passed]


@given(rates, counts, steps)
def test_inverse_square_root(rate: float, count: int, step: int) -> None:
    expected = rate if step <= count else rate * count**0.5 / step**0.5
    assert schedules.InverseSquareRoot(rate, count)(step) == pytest.approx(expected, rel=1e-9)


@given(counts, rates, steps)
def test_warmup(count: int, start: float, step: int) -> None:
    then = schedules.Cosine(3.0, 40)
    schedule = schedules.Warmup(count, then, start)
    expected = then(step - count) if step >= count else start * (1 - step / count) + 3.0 * step / count
    assert schedule(step) == pytest.approx(expected, rel=1e-9, abs=1e-12)
    assert schedules.Warmup(count, 2.0)(count + step) == 2.0


EVERY = [
    schedules.Constant(0.1),
    schedules.StepDecay(0.1, 10),
    schedules.Exponential(0.1, 0.9),
    schedules.Polynomial(0.1, 10, power=2.0),
    schedules.Cosine(0.1, 10, 0.01),
    schedules.CosineRestarts(0.1, 10, 2.0),
    schedules.OneCycle(0.1, 10),
    schedules.Piecewise((5, 10), (0.1, 0.01, 0.001)),
    schedules.InverseSquareRoot(0.1, 10),
    schedules.Warmup(5, schedules.Warmup(5, schedules.Cosine(0.1, 10), 0.05)),
]


def test_every_schedule_is_listed() -> None:
    kinds = {name for name in schedules.__all__ if name != "Schedule"}
    assert {type(schedule).__name__ for schedule in EVERY} == kinds
    assert len(registry.names("schedules/")) == len(kinds)


@pytest.mark.parametrize("schedule", EVERY, ids=lambda x: type(x).__name__)
def test_configurations(schedule: schedules.Schedule, tmp_path: Any) -> None:
    assert pickle.loads(pickle.dumps(schedule)) == schedule
    assert registry.build(schedule.config()) == schedule
    for form in ("json", "toml"):
        registry.save(schedule, tmp_path / f"schedule.{form}")
        assert registry.load(tmp_path / f"schedule.{form}") == schedule
    assert all(isinstance(schedule(step), float) and schedule(step) >= 0 for step in range(30))
    with pytest.raises(ValueError, match="counted from 0"):
        schedule(-1)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: schedules.Constant(-1.0), "rate is a finite"),
        (lambda: schedules.Constant(math.nan), "rate is a finite"),
        (lambda: schedules.Cosine(1.0, 0), "steps is a number"),
        (lambda: schedules.Cosine(1.0, 2.5), "steps is a number"),  # type: ignore[arg-type]
        (lambda: schedules.StepDecay(1.0, 0), "every is a number"),
        (lambda: schedules.CosineRestarts(1.0, 5, growth=0.5), "growth is at least 1"),
        (lambda: schedules.OneCycle(1.0, 5, rise=1.0), "rise is a share"),
        (lambda: schedules.OneCycle(1.0, 5, end_divisor=0.0), "divisors"),
        (lambda: schedules.Piecewise((5,), (1.0,)), "1 boundaries separate"),
        (lambda: schedules.Piecewise((5, 2), (1.0, 1.0, 1.0)), "ascending"),
        (lambda: schedules.Piecewise((-5, 2), (1.0, 1.0, 1.0)), "from 0 up"),
        (lambda: schedules.Piecewise((5,), (1.0, math.inf)), "rates are finite"),
    ],
)
def test_settings_are_checked(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
