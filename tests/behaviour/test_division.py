"""True division, floor division and remainder, with zeros, infinities and the extremes of the integers."""

import math

import pytest

from tests.behaviour.rows import Kind, Row, each, float32, gives, parameters

_INT32_MIN = -(2**31)
_NINES = 1 - 9 * float32(0.1)  # what 1 leaves after nine times the float32 nearest to 0.1; exact


def _seven(t: Kind, dtype: str) -> object:
    return t([7, -7, 7, -7], dtype)


ROWS = [
    Row(
        28,
        lambda t: t.divide(t([1, 2], "int32"), t([2, 3], "int32")),
        gives("float32", [0.5, 2 / 3], rtol=1.2e-7),
    ),
    Row(
        29,
        lambda t: t.divide(t([1, 2], "int64"), t([2, 3], "int64")),
        gives("float32", [0.5, 2 / 3], rtol=1.2e-7),
    ),
    Row(30, lambda t: t.divide(t([1], "int8"), t([2], "int8")), gives("float32", [0.5])),
    Row(
        31,
        lambda t: t.divide(t([1.0, 0.0, -1.0]), t([0.0, 0.0, 0.0])),
        gives("float32", [math.inf, math.nan, -math.inf]),
    ),
    Row(
        32,
        lambda t: t.divide(t([1, 0], "int32"), t([0, 0], "int32")),
        gives("float32", [math.inf, math.nan]),
    ),
    Row(
        33,
        lambda t: t.floor_divide(_seven(t, "int32"), t([2, 2, -2, -2], "int32")),
        gives("int32", [3, -4, -4, 3]),
    ),
    Row(
        34,
        lambda t: t.floor_divide(_seven(t, "float32"), t([2.0, 2.0, -2.0, -2.0])),
        gives("float32", [3, -4, -4, 3]),
    ),
    Row(
        35,
        lambda t: t.floor_divide(t([1, -1, 0], "int32"), t([0, 0, 0], "int32")),
        gives("int32", [0, 0, 0]),
    ),
    Row(
        36,
        lambda t: t.floor_divide(t([1.0, -1.0, 0.0]), t([0.0, 0.0, 0.0])),
        gives("float32", [math.inf, -math.inf, math.nan]),
    ),
    Row(
        37,
        lambda t: t.floor_divide(t([math.inf, 1.0]), t([1.0, -math.inf])),
        gives("float32", [math.inf, -0.0]),
    ),
    Row(
        38,
        lambda t: (t.floor_divide(t([1.0]), t([0.1])), t.mod(t([1.0]), t([0.1]))),
        each(gives("float32", [9]), gives("float32", [_NINES])),
    ),
    Row(
        39,
        lambda t: t.floor_divide(t([_INT32_MIN], "int32"), t([-1], "int32")),
        gives("int32", [_INT32_MIN]),
    ),
    Row(40, lambda t: t.mod(_seven(t, "int32"), t([3, 3, -3, -3], "int32")), gives("int32", [1, 2, -2, -1])),
    Row(41, lambda t: t.mod(_seven(t, "float32"), t([3.0, 3.0, -3.0, -3.0])), gives("float32", [1, 2, -2, -1])),
    Row(42, lambda t: t.mod(t([7], "int32"), t([0], "int32")), gives("int32", [0])),
    Row(
        43,
        lambda t: t.mod(t([7.0, 7.0, -7.0]), t([0.0, math.inf, math.inf])),
        gives("float32", [math.nan, 7, math.inf]),
    ),
]


@pytest.mark.parametrize(("row", "kind"), parameters(ROWS))
def test_case(row: Row, kind: Kind, backend: str) -> None:
    row.run(kind, backend)
