"""Compiled functions that use modules and optimizers: their tensors and the random stream go through the program."""

from __future__ import annotations

from typing import Any

import pytest

import ember_ml
from ember_ml import nn, ops
from ember_ml.backend import installed_backends
from ember_ml.training import optimizers


class Counting(nn.Module):
    def __init__(self) -> None:
        self.inner = nn.Linear(3, 4)
        self.outer = nn.Linear(4, 2)
        self.drop = nn.Dropout(0.25)
        self.calls = nn.Buffer([0.0])

    def forward(self, x: Any) -> Any:
        self.calls = ops.add(self.calls, 1.0)
        return self.outer(self.drop(ops.tanh(self.inner(x))))


def train(how: str, steps: int = 5, switch: bool = False) -> tuple[list[float], float, int]:
    ops.random.seed(5)
    model, optimizer = Counting(), optimizers.Adam(0.05)
    x, y = ops.random_normal((8, 3)), ops.random_normal((8, 2))
    gradients = nn.value_and_grad(model, lambda x, y: ops.mean(ops.square(ops.subtract(model(x), y))))
    if how == "gradients":
        gradients = ember_ml.compile(gradients)

    def step(x: Any, y: Any) -> Any:
        value, found = gradients(x, y)
        optimizer.update(model, found)
        return value

    run = ember_ml.compile(step) if how == "step" else step
    losses = []
    for place in range(steps):
        if switch:
            ember_ml.set_backend(installed_backends()[place % len(installed_backends())])
        losses.append(ops.item(run(x, y)))
    return losses, ops.item(model.calls), optimizer.step


@pytest.mark.parametrize("how", ["gradients", "step"])
def test_training_compiled_is_training_eager(backend: str, how: str) -> None:
    losses, calls, updates = train("eager")
    found, counted, updated = train(how)
    assert found == pytest.approx(losses, rel=1e-5)
    assert (counted, updated) == (calls, updates) == (5.0, 5)


def test_a_switch_between_compiled_steps() -> None:
    losses, *_ = train("eager")
    found, calls, updates = train("step", switch=True)
    ember_ml.set_backend("numpy")
    assert found == pytest.approx(losses, rel=1e-4)
    assert (calls, updates) == (5.0, 5)


def test_a_compiled_module_sees_new_parameters_and_modes(backend: str) -> None:
    model = Counting()
    run = ember_ml.compile(model.eval())
    x = ops.ones((2, 3))
    assert ops.to_numpy(run(x)).tolist() == pytest.approx(ops.to_numpy(model(x)), abs=1e-6)
    model.outer.weight = ops.zeros((2, 4))
    model.outer.bias = [1.0, 2.0]
    assert ops.to_numpy(run(x)).tolist() == [[1.0, 2.0], [1.0, 2.0]]
    model.outer.weight = ops.ones((2, 4))
    still = ops.to_numpy(run(x)).tolist()
    model.train()
    assert any(ops.to_numpy(run(x)).tolist() != still for _ in range(8))


def test_a_module_may_be_an_argument(backend: str) -> None:
    apply = ember_ml.compile(lambda model, x: ops.sum(model(x)))
    one, two = (nn.Linear(2, 1, bias=False).load_state_dict({"weight": [[w, w]]}) for w in (1.0, 3.0))
    x = ops.ones((1, 2))
    assert [ops.item(apply(model, x)) for model in (one, two, one)] == [2.0, 6.0, 2.0]
    one.weight = [[0.5, 0.5]]
    assert ops.item(apply(one, x)) == 1.0


def test_a_module_that_has_no_sizes_yet_is_run_as_it_is_first(backend: str) -> None:
    model = nn.Sequential(nn.Linear(4), ops.relu, nn.Linear(1))
    run = ember_ml.compile(model)
    first = ops.to_numpy(run(ops.ones((2, 3))))
    assert ops.to_numpy(run(ops.ones((2, 3)))) == pytest.approx(first, abs=1e-6)
