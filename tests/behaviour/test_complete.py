"""Every case of `cases.json` is a test: each number once, in the table of its group."""

import importlib
from collections import Counter
from typing import Any

import pytest

from tests.behaviour.rows import CASES, Kind, Row

_MODULE_OF_GROUP = {
    "defaults": "test_defaults",
    "creation": "test_creation",
    "division": "test_division",
    "power/shift": "test_power_shift",
    "bool": "test_bools",
    "promotion": "test_promotion",
    "python scalars": "test_python_scalars",
    "reductions": "test_reductions",
    "nan/ordering": "test_nan_ordering",
    "rounding/cast": "test_rounding_cast",
    "indexing": "test_indexing",
    "nn": "test_nn",
    "matmul": "test_matmul",
    "linalg": "test_linalg",
    "fft": "test_fft",
}


def _tested(group: str) -> list[tuple[Row, Kind]]:
    """Give what the group's test is truly run with, read from its parametrization."""
    test: Any = importlib.import_module(f"tests.behaviour.{_MODULE_OF_GROUP[group]}").test_case
    (parametrization,) = (mark for mark in test.pytestmark if mark.name == "parametrize")
    return [parameter.values for parameter in parametrization.args[1]]


def test_the_cases_are_numbered_without_a_gap() -> None:
    assert [case["number"] for case in CASES] == list(range(320))


def test_every_group_has_a_table() -> None:
    assert {case["group"] for case in CASES} == set(_MODULE_OF_GROUP)


@pytest.mark.parametrize("group", _MODULE_OF_GROUP)
def test_every_case_of_the_group_is_tested_once(group: str) -> None:
    tested = Counter((row.number, kind.name) for row, kind in _tested(group))
    assert set(tested.values()) == {1}
    assert {number for number, _ in tested} == {case["number"] for case in CASES if case["group"] == group}
