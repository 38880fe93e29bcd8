"""What tests of layers share: numbers as plain data, gradients against differences, a switch of the backend."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import ember_ml
from ember_ml import nn, ops
from ember_ml.backend import installed_backends

__all__ = ["check_gradients", "check_state_round_trip", "check_switch", "host", "largest_difference"]


def host(model: nn.Module) -> dict[str, Any]:
    """The parameters and buffers of a module, as arrays of the host."""
    return {name: ops.to_numpy(x) for name, x in model.state_dict().items()}


def largest_difference(x: Any, y: Any) -> float:
    """The largest difference between the elements of two tensors of one shape, of any backends."""
    x, y = ops.to_numpy(x), ops.to_numpy(y)
    assert x.shape == y.shape
    return float(abs(x - y).max(initial=0.0))


def check_gradients(model: nn.Module, compute: Callable[[], Any], step: float = 1e-5) -> None:
    """Compare the gradient of each parameter of a float64 model, in one direction, with a central difference."""

    def loss() -> Any:
        return _weighted(compute())

    ops.random.seed(7)
    for parameter in model.parameters():  # moderate numbers, the same at every run
        parameter.value = ops.random_uniform(parameter.shape, -0.7, 0.7, dtype="float64")
    value, gradients = nn.value_and_grad(model, loss)()
    parameters = model.trainable()
    assert list(gradients) == list(parameters)
    assert ops.item(value) == pytest.approx(ops.item(loss()), rel=1e-12)
    generator = ops.random.Generator(11)
    for name, parameter in parameters.items():
        before = parameter.value
        direction = ops.random_normal(parameter.shape, dtype="float64", seed=generator)
        ends = []
        for sign in (1.0, -1.0):
            parameter.value = ops.add(before, ops.multiply(direction, sign * step))
            ends.append(ops.item(loss()))
        parameter.value = before
        found = ops.item(ops.sum(ops.multiply(gradients[name], direction)))
        assert found == pytest.approx((ends[0] - ends[1]) / (2.0 * step), rel=1e-6, abs=1e-7), name


def _weighted(y: Any) -> Any:
    """One number that depends on every element of ``y`` in another way."""
    flat = ops.reshape(y, (-1,))
    return ops.sum(ops.multiply(ops.square(flat), ops.cos(ops.arange(flat.shape[0], dtype="float64"))))


def check_switch(backend: str, compute: Callable[[], Any], tolerance: float = 1e-5) -> None:
    """Compute on this backend, on another, and here again: the same numbers."""
    other = next((name for name in installed_backends() if name != backend), backend)
    before = ops.to_numpy(compute())
    ember_ml.set_backend(other)
    try:
        assert largest_difference(compute(), before) < tolerance
    finally:
        ember_ml.set_backend(backend)
    assert largest_difference(compute(), before) < tolerance


def check_state_round_trip(make: Callable[[], nn.Module], compute: Callable[[Any], Any]) -> None:
    """A model that takes another's state computes the same."""
    one, two = make(), make()
    before = compute(one)
    assert largest_difference(compute(two), before) > 0.0
    assert largest_difference(compute(two.load_state_dict(one.state_dict())), before) == 0.0
