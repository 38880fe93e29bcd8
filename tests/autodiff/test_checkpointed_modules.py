"""Checkpoints of modules: the gradients of parameters, buffers that change, and what is kept in memory."""

from __future__ import annotations

import gc
import warnings
import weakref
from typing import Any

import pytest

import ember_ml
from ember_ml import nn, ops


def rows(x: Any) -> list[Any]:
    return ops.to_numpy(ops.ravel(x)).tolist()


def network() -> nn.Sequential:
    ops.random.seed(3)
    return nn.Sequential(nn.Linear(3, 4), ops.tanh, nn.Linear(4, 2))


class Blocks(nn.Module):
    def __init__(self, is_checkpointed: bool) -> None:
        ops.random.seed(5)
        self.first, self.second = (nn.Linear(3, 3, dtype="float64") for _ in range(2))
        self.norm = nn.BatchNorm(3, dtype="float64")
        self.is_checkpointed = is_checkpointed

    def block(self, x: Any) -> Any:
        return ops.tanh(self.norm(self.second(ops.tanh(self.first(x)))))

    def forward(self, x: Any) -> Any:
        return (ops.checkpoint(self.block) if self.is_checkpointed else self.block)(x)


X = [[0.1, -0.2, 0.3], [0.4, 0.5, -0.6], [0.7, 0.0, 0.2]]


def test_parameters_of_a_checkpointed_layer_have_their_gradients(backend: str) -> None:
    model = network()
    x = ops.array(X)
    value, wanted = nn.value_and_grad(model, lambda: ops.sum(ops.square(model(x))))()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again, found = nn.value_and_grad(model, lambda: ops.sum(ops.square(ops.checkpoint(model)(x))))()
    assert ops.item(again) == pytest.approx(ops.item(value), rel=1e-6)
    assert found.keys() == wanted.keys()
    for name, gradient in wanted.items():
        assert any(rows(gradient))
        assert rows(found[name]) == pytest.approx(rows(gradient), rel=1e-5, abs=1e-7), name


def test_a_checkpointed_method_changes_its_buffers_once(backend: str) -> None:
    x = ops.array(X, dtype="float64")
    found = []
    for is_checkpointed in (False, True):
        model = Blocks(is_checkpointed)
        value, gradients = nn.value_and_grad(model, lambda model=model: ops.sum(ops.square(model(x))))()
        found.append([ops.item(value), *(rows(g) for g in gradients.values()), *map(rows, model.state_dict().values())])
    for plain, checkpointed in zip(*found, strict=True):
        assert checkpointed == pytest.approx(plain, rel=1e-9, abs=1e-12)


def test_a_closure_over_a_layer(backend: str) -> None:
    model = network()
    x = ops.array(X)

    def block(x: Any) -> Any:
        return ops.square(model(x))

    wanted = nn.value_and_grad(model, lambda: ops.sum(block(x)))()[1]
    found = nn.value_and_grad(model, lambda: ops.sum(ops.checkpoint(block)(x)))()[1]
    for name, gradient in wanted.items():
        assert rows(found[name]) == pytest.approx(rows(gradient), rel=1e-5, abs=1e-7), name


def test_layers_that_are_not_built_yet(backend: str) -> None:
    model = nn.Sequential(nn.Linear(3, 2))
    _, gradients = nn.value_and_grad(model, lambda: ops.sum(ops.checkpoint(model)(ops.array(X))))()
    assert ops.shape(gradients["0.weight"]) == (2, 3)
    assert any(rows(gradients["0.weight"]))


def test_inner_values_are_freed_until_the_gradient_asks() -> None:
    """On NumPy, where the tape holds the memory: what the block computed is gone before the reverse pass."""
    ember_ml.set_backend("numpy")
    held: list[Any] = []

    class Square(nn.Module):
        def __init__(self) -> None:
            self.weight = nn.Parameter(ops.ones((4, 4)))

        def forward(self, x: Any) -> Any:
            inner = ops.exp(ops.matmul(x, self.weight))
            held.append(weakref.ref(inner.value))
            return ops.sum(ops.square(inner))

    model = Square()

    def loss() -> Any:
        found = ops.checkpoint(model)(ops.ones((2, 4)))
        gc.collect()
        held.append(held[0]() is None)
        return found

    nn.value_and_grad(model, loss)()
    assert held[1] is True
