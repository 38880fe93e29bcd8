"""The benchmark measures what it says: both ways of a pattern give the same numbers, and timing orders them rightly."""

from __future__ import annotations

import pytest

from ember_ml import ops
from ember_ml.backend import selection as backends
from ember_ml.bench.calls import OPERATOR, measure_calls
from ember_ml.bench.measurement import evaluator, native_calls
from ember_ml.bench.patterns import PATTERNS, Pattern, _inputs
from ember_ml.bench.timing import Timed, best_times
from ember_ml.dispatch.declare import OPS


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda pattern: pattern.name)
def test_both_ways_of_a_pattern_give_the_same_numbers(pattern: Pattern, backend: str) -> None:
    inputs = _inputs(backends.load(backend), 100)[pattern.inputs]
    careless = ops.to_numpy(pattern.careless(**inputs)).tolist()
    careful = ops.to_numpy(pattern.careful(**inputs)).tolist()
    assert careless == pytest.approx(careful, rel=1e-4, abs=1e-6)


def test_every_native_call_is_that_of_an_op(backend: str) -> None:
    module = backends.load(backend)
    assert native_calls(module).keys() <= OPS.keys()
    x = ops.convert_to_tensor([0.5, 1.5])
    for name in ("sin", "abs", "log"):
        native = evaluator(module)(native_calls(module)[name](x))
        assert ops.to_numpy(native).tolist() == pytest.approx(ops.to_numpy(getattr(ops, name)(x)).tolist(), rel=1e-6)


@pytest.mark.long_with("torch", "mlx")
def test_calls_are_measured_against_the_native_call(backend: str) -> None:
    rows = measure_calls(backend, 10, 0.001, keras=False)
    assert [row.case for row in rows] == [
        "add",
        "multiply",
        "sin",
        "matmul",
        "mean",
        "reshape",
        "concatenate",
        OPERATOR,
    ]
    assert {row.way for row in rows} == {"ops", "EmberTensor"}
    assert all(row.ratio > 0 for row in rows)


def test_timing_finds_the_slower_way() -> None:
    work = {
        "little": Timed("sum(x)", {"x": range(100)}),
        "much": Timed("sum(x)", {"x": range(10_000)}),
    }
    times = best_times(work, 0.02)
    assert 20 < times["much"] / times["little"] < 500


def test_timing_measures_nothing_but_the_line() -> None:
    times = best_times({"nothing": Timed("pass", {})}, 0.01)
    assert times["nothing"] < 100e-9
