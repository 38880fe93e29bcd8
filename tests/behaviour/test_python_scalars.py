"""Python scalars are weak: they take the tensor's dtype, and a Python int that does not fit is an error."""

import math
import operator

import pytest

from tests.behaviour.rows import PORTABLE, Kind, Row, each, gives, parameters, raises

_CONDITION = [True, False]


def _in_place_float_added_to_int(t: Kind) -> None:
    operator.iadd(t([1], "int32"), 1.5)


def _float_assigned_to_int(t: Kind) -> None:
    t([1, 2], "int32")[0] = 2.7


ROWS = [
    Row(91, lambda t: t.add(t([1], "int32"), 1.5), gives("float32", [2.5])),
    Row(92, lambda t: t.add(t([1], "int64"), 1.5), gives("float32", [2.5])),
    Row(93, lambda t: t.add(t([1.0], "float16"), 1.5), gives("float16", [2.5])),
    Row(94, lambda t: t.add(t([1.0], "float16"), 70000.0), gives("float16", [math.inf])),
    Row(95, lambda t: t.add(t([1.0], "float32"), 1e300), gives("float32", [math.inf])),
    Row(96, lambda t: t.add(t([1.0], "float64"), 1e300), gives("float64", [1e300])),
    Row(97, lambda t: t.multiply(t([3.0], "float64"), 0.1), gives("float64", [3 * 0.1])),
    Row(98, lambda t: t.add(t([1], "uint8"), 300), raises(OverflowError)),
    Row(99, lambda t: t.add(t([1], "uint8"), -1), raises(OverflowError)),
    Row(100, lambda t: t.add(t([1], "int8"), 200), raises(OverflowError)),
    Row(101, lambda t: t.add(t([1], "int32"), 2**40), raises(OverflowError)),
    Row(102, lambda t: t.add(t([1], "int64"), 2**62), gives("int64", [2**62 + 1])),
    Row(103, lambda t: t.add(t([True]), 1), gives("int64", [2])),
    Row(104, lambda t: t.add(t([True]), 1.5), gives("float32", [2.5])),
    Row(105, lambda t: t.add(t([1], "int32"), True), gives("int32", [2])),
    Row(106, lambda t: t.add(t([1.0], "float32"), 1j), gives("complex64", [1 + 1j])),
    Row(107, lambda t: t.add(t([1], "int32"), 1j), gives("complex64", [1 + 1j])),
    Row(
        108,
        lambda t: (t.less(t([1], "uint8"), 300), t.less(t([1], "uint8"), -1)),
        each(gives("bool", [True]), gives("bool", [False])),
    ),
    Row(109, lambda t: t.greater(t([2**64 - 1], "uint64"), t([-1], "int64")), gives("bool", [True])),
    Row(110, lambda t: t.equal(t([2**53 + 1], "int64"), t([2.0**53], "float64")), gives("bool", [True])),
    Row(111, lambda t: t.equal(t([2**24 + 1], "int32"), t([2.0**24], "float32")), gives("bool", [True])),
    Row(
        112,
        lambda t: t.where(t(_CONDITION), t([1, 2], "int32"), t([0.5, 0.5], "float32")),
        gives("float32", [1, 0.5]),
    ),
    Row(113, lambda t: t.where(t(_CONDITION), t([1, 2], "int32"), 1.5), gives("float32", [1, 1.5])),
    Row(114, lambda t: t.where(t(_CONDITION), t([1.0, 2.0], "float16"), 0.0), gives("float16", [1, 0])),
    Row(115, lambda t: t.where(t(_CONDITION), 1, 0), gives("int64", [1, 0])),
    Row(
        116,
        lambda t: t.where(t([1, 0], "int32"), t([1, 2], "int32"), t([3, 4], "int32")),
        raises(TypeError, "where", "int32"),
    ),
    Row(
        117,
        lambda t: t.concatenate([t([1], "int32"), t([0.5], "float32")]),
        gives("float32", [1, 0.5]),
    ),
    Row(118, lambda t: t.stack([t([1], "int32"), t([0.5], "float32")]), gives("float32", [[1], [0.5]])),
    Row(119, _in_place_float_added_to_int, raises(TypeError, "int32"), kinds=(PORTABLE,)),
    Row(120, _float_assigned_to_int, raises(TypeError, "int32"), kinds=(PORTABLE,)),
]


@pytest.mark.parametrize(("row", "kind"), parameters(ROWS))
def test_case(row: Row, kind: Kind, backend: str) -> None:
    row.run(kind, backend)
