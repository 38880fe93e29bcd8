"""Differential equations: closed forms and SciPy, orders of convergence, gradients, and how integration fails."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ember_ml
from ember_ml import ops
from ember_ml.backend import installed_backends
from ember_ml.errors import ConvergenceError
from ember_ml.nn.tensor import EmberTensor
from tests.reference.odes import error, exp, integrate, oscillator

ORDERS = {"euler": 1, "midpoint": 2, "rk4": 4}
TIMES = [0.0, 0.3, 1.0, 1.1, 4.0]


def spring(t: Any, y: Any) -> Any:
    return ops.stack([y[1], ops.negative(y[0])])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_adaptive_steps_keep_the_tolerance(dtype: str, backend: str) -> None:
    y0 = ops.array([1.0, 0.0], dtype=dtype)
    for tolerance in (1e-3, 1e-5) if dtype == "float32" else (1e-4, 1e-7, 1e-10):
        y = ops.odeint(spring, y0, TIMES, rtol=tolerance, atol=tolerance)
        assert ops.dtype(y) == dtype
        assert ops.shape(y) == (5, 2)
        assert error(ops.to_numpy(y), oscillator(TIMES)) < 10 * tolerance
    assert ops.to_numpy(ops.odeint(spring, y0, TIMES)).tolist()[0] == [1.0, 0.0]


@pytest.mark.parametrize("name", installed_backends())
@given(
    rates=st.lists(st.floats(-3.0, 1.0), min_size=1, max_size=3),
    times=st.lists(st.floats(-2.0, 2.0), min_size=1, max_size=5),
    falling=st.booleans(),
)
def test_linear_equations_have_exponential_solutions(
    name: str, rates: list[float], times: list[float], falling: bool
) -> None:
    times = sorted(times, reverse=falling)
    with ember_ml.use_backend(name):
        rate = ops.array(rates, dtype="float64")
        y = ops.odeint(lambda t, y: ops.multiply(rate, y), ops.ones_like(rate), times, rtol=1e-9, atol=1e-9)
        wanted = [[math.exp(r * (t - times[0])) for r in rates] for t in times]
        scale = max(abs(value) for row in wanted for value in row)
        assert error(ops.to_numpy(y), wanted) < 1e-7 * scale


@pytest.mark.parametrize("times", [TIMES[::-1], [-x for x in TIMES], [2.0, 2.0, 1.0, 1.0]])
def test_times_may_fall_and_repeat(times: list[float], backend: str) -> None:
    start = oscillator(times[:1])[0]
    for method in ("dopri5", "rk4"):
        options = {"rtol": 1e-9, "atol": 1e-9} if method == "dopri5" else {"step_size": 0.01}
        y = ops.odeint(spring, ops.asarray(start), times, method=method, **options)
        assert error(ops.to_numpy(y), oscillator(times)) < 1e-7


@pytest.mark.parametrize(("method", "order"), ORDERS.items())
def test_fixed_steps_converge_with_their_order(method: str, order: int, backend: str) -> None:
    def f(t: Any, y: Any) -> Any:  # y = exp(sin t)
        return ops.multiply(y, ops.cos(t))

    y0, wanted = ops.ones((), dtype="float64"), math.exp(math.sin(2.0))
    errors = []
    for step in (0.1, 0.05, 0.025):
        y = ops.odeint(f, y0, [0.0, 2.0], method=method, step_size=step)
        errors.append(abs(ops.item(y[1]) - wanted))
    for coarse, fine in pairwise(errors):
        assert math.log2(coarse / fine) == pytest.approx(order, abs=0.25)


def test_one_step_between_times_without_a_step_size(backend: str) -> None:
    y = ops.odeint(lambda t, y: y, ops.array(1.0), [0.0, 1.0, 3.0], method="euler")
    assert ops.to_numpy(y).tolist() == [1.0, 2.0, 6.0]
    y = ops.odeint(lambda t, y: t, ops.array(0.0), [0.0, 2.0], method="midpoint")
    assert ops.to_numpy(y).tolist() == [0.0, 2.0]


def test_adaptive_method_converges_with_order_five_and_its_interpolation_with_four(backend: str) -> None:
    """The error falls with the tolerance as with the fifth power of the step; between the steps as the fourth."""
    at_ends, between = [], []
    for tolerance in (1e-5, 1e-9):
        calls = []

        def f(t: Any, y: Any, calls: list[Any] = calls) -> Any:
            calls.append(t)
            return spring(t, y)

        times = [20 * k / 997 for k in range(998)]
        y = ops.odeint(f, ops.array([1.0, 0.0], dtype="float64"), times, rtol=tolerance, atol=tolerance)
        at_ends.append((error(ops.to_numpy(y)[-1], oscillator(times)[-1]), len(calls)))
        between.append(error(ops.to_numpy(y), oscillator(times)))
    (coarse, few), (fine, many) = at_ends
    assert math.log(coarse / fine) / math.log(many / few) == pytest.approx(5, abs=0.6)
    assert math.log(between[0] / between[1]) / math.log(many / few) > 3.9
    assert many / few == pytest.approx(10 ** (4 / 5), rel=0.2)


@pytest.mark.long_with("jax")
def test_van_der_pol_agrees_with_scipy(backend: str) -> None:
    stiffness = 30.0
    times = [0.0, 10.0, 25.0, 30.0]

    def f(t: Any, y: Any) -> Any:
        return ops.stack([y[1], (1.0 - y[0] * y[0]) * y[1] * stiffness - y[0]])

    wanted = integrate(lambda t, y: [y[1], stiffness * (1 - y[0] ** 2) * y[1] - y[0]], [2.0, 0.0], times)
    y = ops.odeint(f, ops.array([2.0, 0.0], dtype="float64"), times, rtol=1e-8, atol=1e-8)
    assert error(ops.to_numpy(y), wanted) < 1e-5


def test_it_takes_about_as_many_evaluations_as_scipy(backend: str) -> None:
    """The same method with the same tolerance: SciPy needs 1,112 evaluations here."""
    calls: list[Any] = []

    def f(t: Any, y: Any) -> Any:
        calls.append(None)
        a, b = y[0], y[1]
        return ops.stack([a - a * b, a * b - b])

    y = ops.odeint(f, ops.array([5.0, 0.5], dtype="float64"), [0.0, 20.0], rtol=1e-7, atol=1e-7)
    wanted = integrate(lambda t, y: [y[0] - y[0] * y[1], y[0] * y[1] - y[1]], [5.0, 0.5], [0.0, 20.0])
    assert error(ops.to_numpy(y), wanted) < 1e-4
    assert len(calls) < 1400


def test_states_in_containers(backend: str) -> None:
    def f(t: Any, state: dict[str, Any]) -> dict[str, Any]:
        assert ops.shape(t) == ()
        return {"v": [ops.negative(state["x"])], "x": state["v"][0]}

    y0 = {"x": ops.ones((2, 3)), "v": [ops.zeros((2, 3))]}
    for options in ({}, {"method": "rk4", "step_size": 0.05}):
        y = ops.odeint(f, y0, TIMES, **options)
        assert list(y) == ["x", "v"]
        assert ops.shape(y["v"][0]) == (5, 2, 3)
        assert error(ops.to_numpy(y["x"])[:, 1, 2], oscillator(TIMES)[:, 0]) < 1e-4
        assert error(ops.to_numpy(y["v"][0])[:, 0, 0], oscillator(TIMES)[:, 1]) < 1e-4


def test_dtypes_and_portable_tensors(backend: str) -> None:
    y = ops.odeint(lambda t, y: -y, EmberTensor([1.0, 2.0]), EmberTensor([0.0, 1.0]))
    assert type(y) is EmberTensor
    assert error(y.numpy()[1], exp(-1.0) * exp([0.0, math.log(2)])) < 1e-5
    half = ops.odeint(lambda t, y: -y, ops.array([1.0], dtype="float16"), [0.0, 1.0])
    assert (ops.dtype(half), ops.to_numpy(half)[1, 0]) == (ops.float16, ops.to_numpy(ops.array(exp(-1.0), "float16")))
    whole = ops.odeint(lambda t, y: ops.negative(y), ops.array(1), [0, 1])
    assert ops.dtype(whole) == ops.float32
    seen: list[Any] = []
    turned = ops.odeint(lambda t, y: seen.append(ops.dtype(t)) or y * 1j, ops.array(1 + 0j), [0.0, math.pi])
    assert ops.dtype(turned) == ops.complex64
    assert {*seen} == {ops.float32}
    assert abs(ops.item(turned[1]) + 1) < 1e-5


@pytest.mark.parametrize("method", ["dopri5", "rk4"])
def test_gradients_go_through_the_steps(method: str, backend: str) -> None:
    options: dict[str, Any] = {"rtol": 1e-10, "atol": 1e-12} if method == "dopri5" else {"step_size": 0.01}

    def loss(rate: Any, y0: Any) -> Any:
        y = ops.odeint(lambda t, y: ops.negative(rate * y), y0, [0.0, 0.5, 1.0], method=method, **options)
        return ops.sum(y)

    rate, y0 = 0.7, 3.0
    found = ops.grad(loss, argnums=(0, 1))(ops.array(rate, dtype="float64"), ops.array(y0, dtype="float64"))
    assert ops.item(found[0]) == pytest.approx(-y0 * sum(t * math.exp(-rate * t) for t in (0.5, 1.0)), rel=1e-8)
    assert ops.item(found[1]) == pytest.approx(sum(math.exp(-rate * t) for t in (0.0, 0.5, 1.0)), rel=1e-8)


def test_a_solution_that_ends_is_said(backend: str) -> None:
    with pytest.raises(ConvergenceError, match=r"at t = 1 no step is short enough"):
        ops.odeint(lambda t, y: y * y, ops.array(1.0, dtype="float64"), [0.0, 2.0])
    with pytest.raises(ConvergenceError, match=r"at t = 0 "):
        ops.odeint(lambda t, y: y * float("nan"), ops.array(1.0), [0.0, 2.0])
    overflowed = ops.odeint(lambda t, y: y * y, ops.array(1.0), [0.0, 1e3, 1e4, 1e5, 1e6], method="rk4")
    assert not ops.to_numpy(ops.isfinite(overflowed)).all()


@pytest.mark.parametrize(
    ("times", "options", "message"),
    [
        ([], {}, "one element at least"),
        (1.0, {}, "one element at least"),
        ([0.0, 2.0, 1.0], {}, "rise or fall"),
        ([0.0, 1.0], {"method": "rk5"}, "no method 'rk5'; it has dopri5, euler, midpoint, rk4"),
        ([0.0, 1.0], {"step_size": 0.1}, "dopri5 chooses its steps"),
        ([0.0, 1.0], {"method": "rk4", "step_size": 0.0}, "must be positive"),
    ],
)
def test_misuse_is_explained(times: Any, options: dict[str, Any], message: str, backend: str) -> None:
    with pytest.raises(ValueError, match=message):
        ops.odeint(lambda t, y: y, ops.array(1.0), times, **options)


def test_one_time_and_a_function_of_another_form(backend: str) -> None:
    assert ops.to_numpy(ops.odeint(lambda t, y: y, ops.array([1.0]), [3.0])).tolist() == [[1.0]]
    with pytest.raises(ValueError, match=r"what f gives must have the shape of the unknowns, \(2,\), not \(\)"):
        ops.odeint(lambda t, y: ops.sum(y), ops.ones(2), [0.0, 1.0])
