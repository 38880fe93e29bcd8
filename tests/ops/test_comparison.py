"""Comparison by value where no dtype holds both sides, choice by conditions, membership, closeness."""

from __future__ import annotations

import math
import operator
from typing import Any

import pytest

from ember_ml import ops

_COMPARISONS = {
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
    "equal": operator.eq,
    "not_equal": operator.ne,
}


def _lists(result: Any) -> Any:
    return ops.to_numpy(result).tolist()


@pytest.mark.parametrize("name", _COMPARISONS)
def test_unsigned_with_signed_by_value(name: str, backend: str) -> None:
    unsigned, signed = [2**64 - 1, 0, 5, 2**63], [-1, -1, 5, 2**63 - 1]
    x, y = ops.array(unsigned, dtype="uint64"), ops.array(signed, dtype="int64")
    compare, op = _COMPARISONS[name], getattr(ops, name)
    assert _lists(op(x, y)) == [compare(a, b) for a, b in zip(unsigned, signed, strict=True)]
    assert _lists(op(y, x)) == [compare(b, a) for a, b in zip(unsigned, signed, strict=True)]


@pytest.mark.parametrize("name", _COMPARISONS)
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "uint64", "bool"])
@pytest.mark.parametrize("number", [-(2**70), 2**70])
def test_python_integers_beyond_the_range_by_value(name: str, dtype: str, number: int, backend: str) -> None:
    x, compare, op = ops.array([0, 1], dtype=dtype), _COMPARISONS[name], getattr(ops, name)
    assert _lists(op(x, number)) == [compare(0, number), compare(1, number)]
    assert _lists(op(number, x)) == [compare(number, 0), compare(number, 1)]


def test_conditions_must_be_bool(backend: str) -> None:
    with pytest.raises(TypeError, match=r"where.*int64"):
        ops.where(ops.array([1, 0]), 1.0, 2.0)
    with pytest.raises(TypeError, match=r"select.*float32"):
        ops.select([ops.array([1.0, 0.0])], [1])


def test_select_takes_the_first_choice_whose_condition_is_true(backend: str) -> None:
    conditions = [[True, False, False], [True, True, False]]
    result = ops.select(conditions, [ops.array([1, 2, 3]), 4.5], 9)
    assert _lists(result) == [1.0, 4.5, 9.0]
    with pytest.raises(ValueError, match="2 conditions with 1 choices"):
        ops.select(conditions, [1])


@pytest.mark.parametrize("dtype", ["bool", "uint8", "uint16", "uint64", "int32", "float16", "bfloat16", "complex64"])
def test_isin_in_every_shape(dtype: str, backend: str) -> None:
    x, among = ops.array([[0, 1], [1, 0]], dtype=dtype), ops.array([[1]], dtype=dtype)
    assert _lists(ops.isin(x, among)) == [[False, True], [True, False]]
    assert _lists(ops.isin(x, among, invert=True)) == [[True, False], [False, True]]
    assert _lists(ops.isin(x, ops.array([], dtype=dtype))) == [[False, False], [False, False]]


def test_nan_is_in_nothing(backend: str) -> None:
    assert _lists(ops.isin(ops.array([math.nan, 2.0]), ops.array([2.0, math.nan]))) == [False, True]


def test_closeness_of_infinities_nan_and_large_integers(backend: str) -> None:
    x, y = ops.array([math.inf, math.inf, 1.0, math.nan]), ops.array([math.inf, -math.inf, math.inf, math.nan])
    assert _lists(ops.isclose(x, y)) == [True, False, False, False]
    assert _lists(ops.isclose(x, y, equal_nan=True)) == [True, False, False, True]
    near = ops.isclose(ops.array([2**24]), ops.array([2**24 + 1]), rtol=0.0, atol=0.0)
    assert _lists(near) == [False]


@pytest.mark.parametrize("name", ["equal", "not_equal", "less", "less_equal", "greater", "greater_equal"])
def test_signed_and_unsigned_integers_whose_shapes_do_not_broadcast(backend: str, name: str) -> None:
    unsigned, signed = ops.ones((2,), dtype="uint64"), ops.ones((3,), dtype="int8")
    with pytest.raises(ValueError, match="broadcast"):
        getattr(ops, name)(unsigned, signed)
    with pytest.raises(ValueError, match="broadcast"):
        getattr(ops, name)(signed, unsigned)
