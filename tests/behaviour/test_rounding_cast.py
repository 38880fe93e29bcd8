"""Rounding, casts (they saturate), integer wrap-around, and functions that need floats."""

import math

import pytest

from tests.behaviour.rows import Kind, Row, each, gives, parameters, raises

ROWS = [
    Row(192, lambda t: t.round(t([0.5, 1.5, 2.5, -0.5])), gives("float32", [0, 2, 2, -0.0])),
    Row(193, lambda t: t.round(t([1, 2], "int32")), gives("int32", [1, 2])),
    Row(194, lambda t: t.round(t([2.675, 0.125]), 2), gives("float32", [2.68, 0.12], rtol=2.4e-7)),
    Row(195, lambda t: t.round(t([15, 25], "int32"), -1), gives("int32", [20, 20])),
    Row(
        196,
        lambda t: (t.floor(t([1], "int32")), t.ceil(t([1], "int32")), t.trunc(t([1], "int32"))),
        each(gives("int32", [1]), gives("int32", [1]), gives("int32", [1])),
    ),
    Row(197, lambda t: t.sqrt(t([4], "int32")), gives("float32", [2])),
    Row(198, lambda t: t.exp(t([True])), gives("float32", [math.e], rtol=1e-6)),
    Row(
        199,
        lambda t: t.cast(t([math.nan, math.inf, -math.inf, 3e9]), "int32"),
        gives("int32", [0, 2**31 - 1, -(2**31), 2**31 - 1]),
    ),
    Row(200, lambda t: t.cast(t([-1.5, 300.7, math.nan]), "uint8"), gives("uint8", [0, 255, 0])),
    Row(201, lambda t: t.cast(t([1.9, -1.9]), "int32"), gives("int32", [1, -1])),
    Row(202, lambda t: t.cast(t([1e20, -1e20]), "int64"), gives("int64", [2**63 - 1, -(2**63)])),
    Row(203, lambda t: t.cast(t([300, -1], "int32"), "uint8"), gives("uint8", [44, 255])),
    Row(204, lambda t: t.cast(t([1e300], "float64"), "float32"), gives("float32", [math.inf])),
    Row(205, lambda t: t.cast(t([1e6], "float32"), "float16"), gives("float16", [math.inf])),
    Row(206, lambda t: t.cast(t([math.nan, 0.5, 0.0]), "bool"), gives("bool", [True, True, False])),
    Row(207, lambda t: t.cast(t([1 + 2j]), "float32"), raises(TypeError, "complex64", "float32")),
    Row(208, lambda t: t.cast(t([1 + 2j]), "int32"), raises(TypeError, "complex64", "int32")),
    Row(
        209,
        lambda t: (t.sqrt(t([-1.0])), t.log(t([0.0, -1.0])), t.arcsin(t([2.0]))),
        each(
            gives("float32", [math.nan]),
            gives("float32", [-math.inf, math.nan]),
            gives("float32", [math.nan]),
        ),
    ),
    Row(210, lambda t: t.add(t([200], "uint8"), t([100], "uint8")), gives("uint8", [44])),
    Row(
        211,
        lambda t: (t.subtract(t([1], "uint8"), t([2], "uint8")), t.negative(t([1], "uint8"))),
        each(gives("uint8", [255]), gives("uint8", [255])),
    ),
    Row(
        212,
        lambda t: (t.abs(t([-128], "int8")), t.negative(t([-128], "int8"))),
        each(gives("int8", [-128]), gives("int8", [-128])),
    ),
    Row(213, lambda t: t.array([-1], dtype="uint8"), raises(OverflowError)),
    Row(214, lambda t: t.array([300], dtype="uint8"), raises(OverflowError)),
    Row(215, lambda t: t.array([2.7], dtype="int32"), gives("int32", [2])),
    Row(216, lambda t: t.abs(t([3 + 4j])), gives("float32", [5])),
    Row(
        217,
        lambda t: (t.expm1(t([1e-10])), t.log1p(t([1e-10]))),
        each(gives("float32", [1e-10], rtol=2e-7), gives("float32", [1e-10], rtol=2e-7)),
    ),
]


@pytest.mark.parametrize(("row", "kind"), parameters(ROWS))
def test_case(row: Row, kind: Kind, backend: str) -> None:
    row.run(kind, backend)
