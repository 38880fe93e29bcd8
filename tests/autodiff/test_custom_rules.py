"""Rules of custom gradients that close over what is being differentiated."""

from __future__ import annotations

from typing import Any

import pytest

import ember_ml
from ember_ml import ops


def test_a_rule_may_close_over_what_is_differentiated(backend: str) -> None:
    def f(x: Any) -> Any:
        @ops.custom_gradient
        def with_slope(y: Any) -> Any:
            return y * 0.0, lambda g: g * x

        return with_slope(x * 3.0)

    assert ops.item(ops.grad(f)(2.0)) == 6.0
    assert ops.item(ops.grad(ops.grad(f))(2.0)) == 3.0


def test_a_rule_may_take_gradients_itself(backend: str) -> None:
    """The rule of 1 / a is written with a derivative of a product by a, which belongs to no gradient outside."""

    def inverse(a: Any) -> Any:
        x = ops.divide(1.0, ops.stop_gradient(a))

        def back(g: Any) -> Any:
            slope = ops.vjp(lambda v: a * v, ops.zeros_like(g))[1](ops.ones_like(g))[0]
            return g / slope

        @ops.custom_gradient
        def correction(residual: Any) -> Any:
            return residual * 0.0, back

        first = x + correction(1.0 - a * x)

        @ops.custom_gradient
        def solution(y: Any, residual: Any) -> Any:
            return y * 1.0, lambda g: (a * back(g), back(g))

        return solution(first, 1.0 - a * first)

    assert ops.item(ops.grad(inverse)(0.5)) == pytest.approx(-4.0, rel=1e-6)
    assert ops.item(ops.grad(ops.grad(inverse))(0.5)) == pytest.approx(16.0, rel=1e-6)


@pytest.mark.parametrize("transform", [ops.grad, ops.jacobian])
def test_a_compiled_gradient_follows_the_rule(transform: Any, backend: str) -> None:
    @ops.custom_gradient
    def double(x: Any) -> Any:
        return x * 2.0, lambda g: g * 5.0

    program = ember_ml.compile(lambda x: transform(lambda v: ops.sum(double(v) * 3.0))(x))
    assert ops.to_numpy(program(ops.ones(2))).tolist() == [15.0, 15.0]
