"""Derivatives of activations up to the third, also far from 0, where powers overflow, against mpmath."""

from __future__ import annotations

import math
from typing import Any

import mpmath
import pytest

import ember_ml
from ember_ml import ops


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + mpmath.exp(-x))


def _gelu(x: Any) -> Any:
    return x * _sigmoid(2 * mpmath.sqrt(2 / mpmath.pi) * (x + mpmath.mpf("0.044715") * x**3))


CASES = {
    "sigmoid": (_sigmoid, (-100.0, -80.0, -50.0, -30.0, -3.0, 0.0, 0.5, 30.0, 100.0)),
    "silu": (lambda x: x * _sigmoid(x), (-100.0, -86.0, -50.0, -29.0, -3.0, 0.0, 0.5, 30.0, 100.0)),
    "gelu": (_gelu, (-10.0, -9.95, -7.0, -3.0, 0.0, 0.5, 7.0, 10.0)),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("compiled", [False, True])
def test_they_are_those_of_the_formula(backend: str, name: str, dtype: str, compiled: bool) -> None:
    formula, places = CASES[name]
    x = ops.array(places, dtype=dtype)
    function = getattr(ops, name)
    for order in (1, 2, 3):
        function = ember_ml.grad(lambda y, f=function: ops.sum(f(y)))
        found = ops.to_numpy((ember_ml.compile(function) if compiled else function)(x)).tolist()
        with mpmath.workdps(60):
            wanted = [float(mpmath.diff(formula, mpmath.mpf(place), order)) for place in ops.to_numpy(x).tolist()]
        # the third power of the slope, 1800 at 7, magnifies a last digit of a sigmoid near 1
        tolerance = 2e-6 if dtype == "float32" else 1e-11
        for place, got, want in zip(places, found, wanted, strict=True):
            assert math.isclose(got, want, rel_tol=tolerance, abs_tol=tolerance), (order, place, got, want)
