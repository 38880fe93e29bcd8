"""Powers and bit shifts of integers."""

import math

import pytest

from tests.behaviour.rows import Kind, Row, each, gives, parameters, raises

ROWS = [
    Row(44, lambda t: t.power(t([2, -1, 0], "int32"), t([-1, -1, -1], "int32")), raises(ValueError, "power")),
    Row(45, lambda t: t.power(t([2, -1], "int32"), -1), raises(ValueError, "power")),
    Row(46, lambda t: t.power(t([10], "int32"), t([10], "int32")), gives("int32", [10**10 % 2**32])),
    Row(
        47,
        lambda t: (t.power(t([0], "int32"), t([0], "int32")), t.power(t([0.0]), t([0.0]))),
        each(gives("int32", [1]), gives("float32", [1])),
    ),
    Row(48, lambda t: t.power(t([-8.0]), 1 / 3), gives("float32", [math.nan])),
    Row(49, lambda t: t.power(t([4], "int32"), 0.5), gives("float32", [2])),
    Row(50, lambda t: t.power(t([True]), t([True])), raises(TypeError, "bool")),
    Row(
        51,
        lambda t: (
            t.bitwise_left_shift(t([1, 1, 1], "int32"), t([31, 32, 33], "int32")),
            t.bitwise_right_shift(t([-8, 8], "int32"), t([32, 32], "int32")),
        ),
        each(gives("int32", [-(2**31), 0, 0]), gives("int32", [-1, 0])),
    ),
    Row(
        52,
        lambda t: t.bitwise_right_shift(t([-8, -8, -8], "int32"), t([1, 31, 40], "int32")),
        gives("int32", [-4, -1, -1]),
    ),
    Row(53, lambda t: t.bitwise_left_shift(t([8], "int32"), t([-1], "int32")), gives("int32", [0])),
    Row(54, lambda t: t.bitwise_left_shift(t([255], "uint8"), t([1], "uint8")), gives("uint8", [254])),
]


@pytest.mark.parametrize(("row", "kind"), parameters(ROWS))
def test_case(row: Row, kind: Kind, backend: str) -> None:
    row.run(kind, backend)
