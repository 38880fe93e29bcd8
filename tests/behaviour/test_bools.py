"""Booleans are not numbers: arithmetic on two of them is an error, logic and counting are not."""

import pytest

from tests.behaviour.rows import Kind, Row, each, gives, parameters, raises

_REFUSED = raises(TypeError, "bool")


def _x(t: Kind) -> object:
    return t([True, False, True])


def _y(t: Kind) -> object:
    return t([True, True, True])


ROWS = [
    Row(55, lambda t: t.add(_x(t), _y(t)), _REFUSED),
    Row(56, lambda t: t.subtract(_x(t), _y(t)), _REFUSED),
    Row(57, lambda t: t.multiply(_x(t), _y(t)), _REFUSED),
    Row(58, lambda t: t.divide(_x(t), _y(t)), _REFUSED),
    Row(59, lambda t: t.floor_divide(_x(t), _y(t)), _REFUSED),
    Row(60, lambda t: t.negative(_x(t)), _REFUSED),
    Row(61, lambda t: t.bitwise_invert(_x(t)), gives("bool", [False, True, False])),
    Row(62, lambda t: t.abs(_x(t)), _REFUSED),
    Row(63, lambda t: t.sum(_x(t)), gives("int64", 2)),
    Row(64, lambda t: t.mean(_x(t)), gives("float32", 2 / 3, rtol=1.2e-7)),
    Row(65, lambda t: t.max(_x(t)), gives("bool", True)),
    Row(66, lambda t: t.cumsum(_x(t)), gives("int64", [1, 1, 2])),
    Row(67, lambda t: t.sort(_x(t)), gives("bool", [False, True, True])),
    Row(68, lambda t: t.bitwise_and(_x(t), t([1, 1, 1], "int32")), gives("int32", [1, 0, 1])),
    Row(
        69,
        lambda t: (t.any(t([1, 0], "uint8")), t.all(t([1, 0], "uint8"))),
        each(gives("bool", True), gives("bool", False)),
    ),
    Row(
        70,
        lambda t: (t.bitwise_invert(t([0], "uint8")), t.bitwise_invert(t([0], "int8"))),
        each(gives("uint8", [255]), gives("int8", [-1])),
    ),
    Row(71, lambda t: t.logical_and(t([1, 0], "int32"), t([0.5, 0.5])), gives("bool", [True, False])),
]


@pytest.mark.parametrize(("row", "kind"), parameters(ROWS))
def test_case(row: Row, kind: Kind, backend: str) -> None:
    row.run(kind, backend)
