"""The same small computation on every backend, one after the other in one process.

A daily signal with a yearly wave is made once, as portable tensors. Each backend in turn takes these very tensors,
finds the wave with a Fourier transform, fits trend and wave by least squares, and reduces what is left to its
principal component.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import pi
from time import perf_counter
from typing import Any

from rich.table import Table

import ember_ml
from ember_ml import ops
from ember_ml.tensor import EmberTensor

__all__ = ["Result", "agree", "run", "table"]

_DAYS = 1460
_TOLERANCE = 1e-4
_FACTS = ("period", "trend", "wave", "rest", "share")


@dataclass(frozen=True, slots=True)
class Result:
    """The results of one backend, their difference from the first backend's, and the time."""

    backend: str
    facts: dict[str, float]
    difference: float
    milliseconds: float


def _signal() -> tuple[Any, Any]:
    """Return the time in years, and a value for each day: a trend, a wave of one year, and a small irregular part."""
    years = ops.divide(ops.arange(_DAYS, dtype="float32"), 365.0)
    wave = ops.multiply(3.0, ops.sin(ops.multiply(years, 2 * pi)))
    rest = ops.multiply(0.5, ops.sin(ops.square(ops.multiply(years, 36.5))))
    return years, ops.add(ops.add(ops.multiply(years, 4.0), wave), rest)


def _fit(columns: list[Any], values: Any) -> tuple[Any, Any]:
    """Return the coefficients with which ``columns`` come nearest to ``values``, and what they leave over."""
    matrix = ops.stack(columns, axis=1)
    turned = ops.transpose(matrix)
    coefficients = ops.solve(ops.matmul(turned, matrix), ops.matmul(turned, values))
    return coefficients, ops.subtract(values, ops.matmul(matrix, coefficients))


def analyse(years: Any, values: Any) -> dict[str, float]:
    """Return the period, trend and wave of a series, and the share of its strongest component, on any backend."""
    line = [ops.ones_like(years), years]
    _, detrended = _fit(line, values)
    period = _DAYS / ops.item(ops.argmax(ops.abs(ops.rfft(detrended))))
    angle = ops.multiply(years, 2 * pi * 365 / period)
    fitted, rest = _fit([*line, ops.sin(angle), ops.cos(angle)], values)
    weeks = ops.reshape(rest[: _DAYS // 7 * 7], (-1, 7))
    strengths = ops.square(ops.svdvals(weeks))
    share = ops.divide(strengths[0], ops.sum(strengths))
    amplitude = ops.sqrt(ops.add(ops.square(fitted[2]), ops.square(fitted[3])))
    found = (period, fitted[1], amplitude, ops.std(rest), share)
    return {name: ops.item(value) for name, value in zip(_FACTS, found, strict=True)}


def run(backends: Sequence[str]) -> list[Result]:
    """Run the computation on each backend; the tensors are made on the first one and follow every switch."""
    before = ember_ml.get_backend()
    results: list[Result] = []
    try:
        ember_ml.set_backend(backends[0])
        years, values = (EmberTensor(part) for part in _signal())
        for name in backends:
            ember_ml.set_backend(name)
            facts = analyse(years, values)  # the first run also loads what the library loads late
            taken = min(_measure(years, values) for _ in range(5))
            first = results[0].facts if results else facts
            difference = max(abs(facts[key] - first[key]) / abs(first[key]) for key in facts)
            results.append(Result(name, facts, difference, taken * 1e3))
    finally:
        ember_ml.set_backend(before)
    return results


def _measure(years: Any, values: Any) -> float:
    start = perf_counter()
    analyse(years, values)
    return perf_counter() - start


def agree(results: Sequence[Result]) -> bool:
    """Return whether every backend found the same, to float32 accuracy."""
    return all(result.difference < _TOLERANCE for result in results)


def table(results: Sequence[Result]) -> Table:
    """Return the results, a row for each backend; the time is the best of five."""
    shown = Table(title="One computation, every installed backend, one process", title_justify="left")
    shown.add_column("backend")
    for heading in (*_FACTS, "differs", "time"):
        shown.add_column(heading, justify="right")
    for result in results:
        shown.add_row(
            result.backend,
            *(f"{value:.5g}" for value in result.facts.values()),
            f"{result.difference:.1e}",
            f"{result.milliseconds:.3g} ms",
        )
    if not agree(results):
        shown.caption = f"[bold red]the backends differ by more than {_TOLERANCE:g}[/]"
    elif len(results) > 1:
        shown.caption = (
            "all agree: the period found in a series of days, its trend per year, the height of its wave, "
            "the deviation of the rest, and the share of one weekly pattern in that"
        )
    return shown
