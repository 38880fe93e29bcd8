"""Functions in double precision against values computed to 40 digits, where libraries lose some or all of them."""

from __future__ import annotations

import math
from typing import Any

import pytest

from ember_ml import ops
from tests.subnormals import keeps_subnormals

# The values were computed with mpmath.
_VALUES = [
    ("erf", 0.5, 0.5204998778130465),
    ("erf", 1e-10, 1.1283791670955126e-10),
    ("erf", 2.5, 0.999593047982555),
    ("erfc", 10.0, 2.088487583762545e-45),
    ("erfc", 1.5, 0.033894853524689274),
    ("erfc", -2.0, 1.9953222650189528),
    ("erfinv", 0.5, 0.4769362762044699),
    ("erfinv", 0.999, 2.3267537655135246),
    ("lgamma", 0.1, 2.252712651734206),
    ("lgamma", 100.5, 361.4355404677776),
    ("lgamma", -2.5, -0.056243716497674054),
    ("digamma", 0.25, -4.2274535333762655),
    ("digamma", 12.5, 2.4851956512749123),
    ("digamma", -1.5, 0.7031566406452432),
    ("i0", 1.0, 1.2660658777520084),
    ("i0", 30.0, 781672297823.9775),
    ("i0", 700.0, 1.5295933476718737e302),
    ("exp", 700.0, 1.0142320547350045e304),
    ("exp", 1.0, 2.718281828459045),
    ("exp2", 0.3, 1.2311444133449163),
    ("sin", 1e10, -0.4875060250875107),
    ("sin", 3.141592653589793, 1.2246467991473532e-16),
    ("cos", 1e10, 0.873119622676856),
    ("cos", 1.5707963267948966, 6.123233995736766e-17),
    ("tanh", 0.25, 0.24491866240370913),
    ("cbrt", 1e300, 1e100),
    ("sigmoid", -700.0, 9.85967654375977e-305),
]


def _lists(result: Any) -> Any:
    return ops.to_numpy(result).tolist()


@pytest.mark.parametrize(("name", "x", "value"), _VALUES)
def test_double_precision(name: str, x: float, value: float, backend: str) -> None:
    (found,) = _lists(getattr(ops, name)(ops.array([x], dtype="float64")))
    assert math.isclose(found, value, rel_tol=2e-15), (found, value)


def test_exponential_of_float32_up_to_its_limits(backend: str) -> None:
    found = _lists(ops.exp(ops.array([88.5, -100.0, math.inf, -math.inf])))
    assert math.isclose(found[0], 2.7230878250681117e38, rel_tol=3e-7)
    if keeps_subnormals(backend):
        assert math.isclose(found[1], 3.783505853677006e-44, rel_tol=4e-2)  # one unit: float32 has five bits here
    assert found[2:] == [math.inf, 0.0]


def test_special_values(backend: str) -> None:
    poles = _lists(ops.lgamma(ops.array([0.0, -1.0, -2.0, math.inf, -math.inf])))
    assert poles == [math.inf] * 5
    assert str(_lists(ops.digamma(ops.array([0.0, -1.0, math.inf])))) == "[-inf, nan, inf]"
    assert str(_lists(ops.erfinv(ops.array([1.0, -1.0, 2.0], dtype="float64")))) == "[inf, -inf, nan]"
    assert _lists(ops.i0(ops.array([0.0, math.inf, -math.inf]))) == [1.0, math.inf, math.inf]
    assert str(_lists(ops.xlogy(ops.array([0.0, 0.0, 0.0]), ops.array([0.0, math.nan, math.inf])))) == "[0.0, nan, 0.0]"
    assert str(_lists(ops.heaviside(ops.array([-1.0, math.nan]), 0.5))) == "[0.0, nan]"


def test_softmax_of_large_numbers_and_of_no_axis(backend: str) -> None:
    assert _lists(ops.softmax(ops.array([[1000.0, 1000.0], [-math.inf, 0.0]]))) == [[0.5, 0.5], [0.0, 1.0]]
    with pytest.raises(IndexError):
        ops.softmax(ops.array(1.0))
    with pytest.raises(IndexError):
        ops.log_softmax(ops.array([1.0]), axis=1)


def test_softmax_of_a_long_row_of_halves_sums_to_one(backend: str) -> None:
    row = ops.softmax(ops.zeros((4096,), dtype="float16"))
    assert _lists(row)[0] == 1 / 4096
