"""Order: NaN last in sorts and first in argmax, ties to the first, stable sorts, indices int64."""

import math

import pytest

from tests.behaviour.rows import Kind, Row, each, gives, parameters, returns

_NAN_IN_THE_MIDDLE = [1.0, math.nan, 3.0]
_TIES = [i % 3 for i in range(2000)]
_STABLE_ORDER = sorted(range(2000), key=_TIES.__getitem__)


def _many_with_nan(t: Kind) -> object:
    return t([math.nan if i == 50 else float(i) for i in range(100)])


def _column_with_nan(t: Kind) -> object:
    return t([[1.0, math.nan if i == 20 else 2.0, 3.0] for i in range(40)])


ROWS = [
    Row(164, lambda t: t.argmax(t([1.0, 3.0, 3.0])), gives("int64", 1)),
    Row(165, lambda t: t.argmax(t.ones((1000,))), gives("int64", 0)),
    Row(166, lambda t: t.argmin(t.ones((1000,))), gives("int64", 0)),
    Row(167, lambda t: t.argmax(t([*_NAN_IN_THE_MIDDLE, math.nan])), gives("int64", 1)),
    Row(168, lambda t: t.argmin(t([*_NAN_IN_THE_MIDDLE, math.nan])), gives("int64", 1)),
    Row(169, lambda t: t.argmax(t([[1.0, 2.0], [4.0, 3.0]]), axis=1), gives("int64", [1, 0])),
    Row(170, lambda t: t.argmax(t([False, True, True])), gives("int64", 1)),
    Row(171, lambda t: t.max(t(_NAN_IN_THE_MIDDLE)), gives("float32", math.nan)),
    Row(172, lambda t: t.max(_many_with_nan(t)), gives("float32", math.nan)),
    Row(173, lambda t: t.min(_column_with_nan(t), axis=0), gives("float32", [1, math.nan, 3])),
    Row(
        174,
        lambda t: t.maximum(t([1.0, math.nan]), t([math.nan, 1.0])),
        gives("float32", [math.nan, math.nan]),
    ),
    # Either sign of zero is right: abs removes it.
    Row(175, lambda t: t.abs(t.maximum(t([-0.0, 0.0]), t([0.0, -0.0]))), gives("float32", [0, 0])),
    Row(176, lambda t: t.clip(t([math.nan, 2.0, -1.0]), 0.0, 1.0), gives("float32", [math.nan, 1, 0])),
    Row(177, lambda t: t.clip(t([5.0, 0.0]), 3.0, 1.0), gives("float32", [1, 1])),
    Row(178, lambda t: t.clip(t([0, 1, 2], "int32"), 0.5, 1.5), gives("float32", [0.5, 1, 1.5])),
    Row(
        179,
        lambda t: t.sort(t([3.0, math.nan, 1.0, -math.inf, math.inf])),
        gives("float32", [-math.inf, 1, 3, math.inf, math.nan]),
    ),
    Row(180, lambda t: t.argsort(t([math.nan, 1.0, math.nan, 0.0])), gives("int64", [3, 1, 0, 2])),
    Row(
        181,
        lambda t: (t.argsort(t(_TIES, "float32")), t.argsort(t(_TIES, "int64"))),
        each(gives("int64", _STABLE_ORDER), gives("int64", _STABLE_ORDER)),
    ),
    Row(182, lambda t: t.sort(t([[3.0, 1.0], [2.0, 0.0]])), gives("float32", [[1, 3], [0, 2]])),
    Row(183, lambda t: t.sort(t([2 + 1j, 1 + 5j, 1 - 1j])), gives("complex64", [1 - 1j, 1 + 5j, 2 + 1j])),
    Row(184, lambda t: t.sort(t(1.0)), gives("float32", 1)),
    Row(
        185,
        lambda t: t.searchsorted(t([1.0, 2.0, 2.0, 3.0]), t([2.0, math.nan])),
        gives("int64", [1, 4]),
    ),
    Row(186, lambda t: t.unique(t([math.nan, 1.0, math.nan])), gives("float32", [1, math.nan, math.nan])),
    Row(
        187,
        lambda t: tuple(t.top_k(t([1.0, 3.0, 2.0]), 2)),
        each(gives("float32", [3, 2]), gives("int64", [1, 2])),
    ),
    Row(188, lambda t: t.sign(t([math.nan, -0.0, -5.0])), gives("float32", [math.nan, 0, -1])),
    Row(189, lambda t: t.sign(t([3 + 4j, 0j])), gives("complex64", [0.6 + 0.8j, 0j], rtol=3e-7)),
    Row(190, lambda t: t.isclose(t([1.0]), t([1 + 1e-5])), gives("bool", [False])),
    Row(
        191,
        lambda t: (t.equal(t([math.nan]), t([math.nan])), bool(t.allclose(t([math.nan]), t([math.nan])))),
        each(gives("bool", [False]), returns(False)),
    ),
]


@pytest.mark.parametrize(("row", "kind"), parameters(ROWS))
def test_case(row: Row, kind: Kind, backend: str) -> None:
    row.run(kind, backend)
