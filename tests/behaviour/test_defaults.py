"""Default dtypes: float32, int64, complex64; a typed source keeps its dtype, in full accuracy."""

import math

import pytest

from ember_ml import ops
from tests.behaviour.rows import Kind, Row, each, gives, parameters, raises

_ERFINV_OF_HALF = 0.4769362762044699  # the x with erf(x) = 1/2, to the last double digit


def _double_accuracy(t: Kind) -> tuple[object, ...]:
    """Each function that a library computes in float32 although its input is float64."""
    x = t([0.1], "float64")
    large = t([0.1, 1000.1], "float64")  # rounded to float32, the larger one would move by 2e-5
    return (
        t.sin(large),
        t.cos(large),
        t.exp(x),
        t.erf(x),
        t.erfinv(t([0.5], "float64")),
        t.sigmoid(x),
        t.logaddexp(x, t([0.7], "float64")),
        t.softmax(t([0.1, 0.7], "float64")),
        t.logsumexp(t([0.1, 0.7], "float64")),
        t.det(t([[1.1, 0.3], [0.7, 2.3]], "float64")),
    )


_LOG_OF_SUM = math.log(math.exp(0.1) + math.exp(0.7))

ROWS = [
    Row(0, lambda t: t.array([1.5]), gives("float32", [1.5])),
    Row(1, lambda t: t.array([1]), gives("int64", [1])),
    Row(2, lambda t: t.array([2**31]), gives("int64", [2**31])),
    Row(3, lambda t: t.array([2**40]), gives("int64", [2**40])),
    Row(4, lambda t: t.array([2**63]), raises(OverflowError)),
    Row(5, lambda t: t.array([1, 2.5, True]), gives("float32", [1, 2.5, 1])),
    Row(6, lambda t: t.array([True, 2]), gives("int64", [1, 2])),
    Row(7, lambda t: t.array([1 + 2j]), gives("complex64", [1 + 2j])),
    Row(8, lambda t: t.array([]), gives("float32", [])),
    Row(9, lambda t: t.array(ops.to_numpy(t([1.1], "float64"))), gives("float64", [1.1])),
    Row(10, lambda t: t.array(ops.to_numpy(t([2**40], "int64"))), gives("int64", [2**40])),
    Row(11, lambda t: t.zeros(2), gives("float32", [0, 0])),
    Row(12, lambda t: t.arange(3), gives("int64", [0, 1, 2])),
    Row(13, lambda t: t.arange(0.0, 1.0, 0.25), gives("float32", [0, 0.25, 0.5, 0.75])),
    Row(14, lambda t: t.full((2,), 7), gives("int64", [7, 7])),
    Row(15, lambda t: t.full((2,), True), gives("bool", [True, True])),
    Row(16, lambda t: t.eye(2), gives("float32", [[1, 0], [0, 1]])),
    Row(17, lambda t: t.add(t([0.1], "float64"), 1), gives("float64", [1.1])),
    Row(
        18,
        _double_accuracy,
        each(
            gives("float64", [math.sin(0.1), math.sin(1000.1)], rtol=1e-14),
            gives("float64", [math.cos(0.1), math.cos(1000.1)], rtol=1e-14),
            gives("float64", [math.exp(0.1)], rtol=1e-14),
            gives("float64", [math.erf(0.1)], rtol=1e-14),
            gives("float64", [_ERFINV_OF_HALF], rtol=1e-14),
            gives("float64", [1 / (1 + math.exp(-0.1))], rtol=1e-14),
            gives("float64", [_LOG_OF_SUM], rtol=1e-14),
            gives("float64", [math.exp(0.1 - _LOG_OF_SUM), math.exp(0.7 - _LOG_OF_SUM)], rtol=1e-14),
            gives("float64", _LOG_OF_SUM, rtol=1e-14),
            gives("float64", 1.1 * 2.3 - 0.3 * 0.7, rtol=1e-14),
        ),
    ),
]


@pytest.mark.parametrize(("row", "kind"), parameters(ROWS))
def test_case(row: Row, kind: Kind, backend: str) -> None:
    row.run(kind, backend)
