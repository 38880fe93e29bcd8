"""softmax at infinities and on odd dtypes; sigmoid, tanh and erf."""

import math

import pytest

from tests.behaviour.rows import Check, Kind, Row, each, gives, parameters, ulps32

_SOFTMAX_OF_1_2 = [1 / (1 + math.e), math.e / (1 + math.e)]
_ERF_POINTS = [2.0**-20, 2.0**-10, 0.25, 0.5, -1.5, 2.0, 3.5]


def _erf_check(point: float) -> Check:
    return gives("float32", math.erf(point), atol=ulps32(4, math.erf(point)))


ROWS = [
    Row(256, lambda t: t.softmax(t([-math.inf])), gives("float32", [math.nan])),
    Row(257, lambda t: t.softmax(t([-math.inf, -math.inf])), gives("float32", [math.nan, math.nan])),
    Row(258, lambda t: t.softmax(t([math.inf, 0.0])), gives("float32", [math.nan, math.nan])),
    Row(259, lambda t: t.softmax(t([-math.inf, 0.0])), gives("float32", [0, 1])),
    Row(260, lambda t: t.softmax(t([1, 2], "int32")), gives("float32", _SOFTMAX_OF_1_2, rtol=1e-6)),
    # The float16 nearest to the exact values: what is computed in float16 can end one step lower.
    Row(261, lambda t: t.softmax(t([1.0, 2.0], "float16")), gives("float16", [1102 / 4096, 1497 / 2048])),
    Row(262, lambda t: t.softmax(t([])), gives("float32", [])),
    Row(263, lambda t: t.sigmoid(t([-1000, 1], "int32")), gives("float32", [0, _SOFTMAX_OF_1_2[1]], rtol=1e-6)),
    Row(264, lambda t: t.tanh(t([1000.0, -1000.0])), gives("float32", [1, -1])),
    Row(
        265,
        lambda t: (t.erf(t(1, "int32")), *(t.erf(t(point)) for point in _ERF_POINTS)),
        each(_erf_check(1.0), *(_erf_check(point) for point in _ERF_POINTS)),
    ),
]


@pytest.mark.parametrize(("row", "kind"), parameters(ROWS))
def test_case(row: Row, kind: Kind, backend: str) -> None:
    row.run(kind, backend)
