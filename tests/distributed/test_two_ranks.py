"""Two processes on every installed backend: each starts once, and its ranks' results are compared here."""

from __future__ import annotations

from functools import cache
from itertools import product
from typing import Any

import pytest

from tests.distributed.jobs import REDUCED, train
from tests.distributed.ranks import run_ranks

BASES = [[[1, 2], [3, 0], [7, 0], [0, 0]], [[2, 2], [3, 5], [7, 0], [1, 1]]]


@cache
def results(backend: str) -> list[Any]:
    return run_ranks("everything", backend, 2)


@pytest.fixture
def exchanged(backend: str) -> list[Any]:
    return [rank["exchange"] for rank in results(backend)]


def plus(x: Any, y: Any, how: Any = lambda a, b: a + b) -> Any:
    return [plus(a, b, how) for a, b in zip(x, y, strict=True)] if isinstance(x, list) else how(x, y)


def test_each_collective_on_each_dtype(exchanged: list[Any]) -> None:
    zero, one = BASES
    expected = {"sum": plus(zero, one), "max": plus(zero, one, max), "min": plus(zero, one, min)}
    expected |= {"gather": zero + one, "broadcast": one}
    for rank, found in enumerate(exchanged):
        expected["scatter"] = expected["sum"][2 * rank : 2 * rank + 2]
        for dtype, (name, values) in product(REDUCED, expected.items()):
            if dtype != "complex64":
                assert found[f"{name} {dtype}"] == values, (rank, dtype)
            elif name not in ("max", "min"):
                assert found[f"{name} {dtype}"] == [values, plus(values, values, lambda a, b: 0)]
        assert all(found[f"kept {dtype}"] for dtype in REDUCED)


def test_other_forms(exchanged: list[Any]) -> None:
    mean = plus(*BASES, lambda a, b: (a + b) / 2)
    for rank, found in enumerate(exchanged):
        assert (found["rank"], found["count"]) == (rank, 2)
        assert found["mean"] == mean
        assert found["any"] == plus(*BASES, lambda a, b: int(3 in (a, b)))
        assert found["0-d"] == [0.0, 1.0]
        assert found["strided"] == [list(column) for column in zip(*plus(*BASES), strict=True)]
        assert found["empty"] == [6, 0]
        assert found["bits"] == [float("-inf"), float("inf")]
        assert found["portable"] == [True, 2.0]
        assert found["average"] == [mean, [0.5]]
        assert found["weighted"] == [[2.0, 2.0]]
        assert found["hidden"] == [[5.0]]
    assert [found["received"] for found in exchanged] == [[8, 9], BASES[0]]


def test_mistakes_are_refused_before_anything_is_sent(exchanged: list[Any]) -> None:
    kinds = {
        "mean of integers": ("TypeError", "no mean of int64"),
        "sum of bools": ("TypeError", "no sum of bool"),
        "no such reduction": ("ValueError", "median"),
        "no such rank": ("ValueError", "no rank 2"),
        "to itself": ("ValueError", "itself"),
        "uneven": ("ValueError", "2 equal parts"),
        "too many": ("LaunchError", "asks for 3 processes and runs on 2"),
        "differentiated": ("LostGradient", "lose its gradient"),
    }
    for found in exchanged:
        for name, (kind, words) in kinds.items():
            assert found["errors"][name][0] == kind
            assert words in found["errors"][name][1]


def largest_difference(x: Any, y: Any) -> float:
    if isinstance(x, list):
        return max((largest_difference(a, b) for a, b in zip(x, y, strict=True)), default=0.0)
    return abs(x - y)


def test_data_parallel_training_is_that_of_one_process(backend: str) -> None:
    check_training(train("SingleProcess"), results(backend), "DataParallelStrategy")


def check_training(alone: Any, ranks: list[Any], strategy: str) -> None:
    """Equal on all ranks bit for bit, and what one process computes on the whole batch but for rounding."""
    for rank in ranks:
        found = rank[strategy]
        assert found["parameters"] == ranks[0][strategy]["parameters"]
        assert found["losses"] == ranks[0][strategy]["losses"]
        for part in ("parameters", "state"):
            assert found[part].keys() == alone[part].keys()
            for name, values in alone[part].items():
                assert largest_difference(found[part][name], values) < 2e-6, name
        assert largest_difference(found["losses"], alone["losses"]) < 2e-6
    assert alone["losses"][-1] < alone["losses"][0] / 4
