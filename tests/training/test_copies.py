"""Copies and pickles of trainers, compiled functions and limits of dtypes."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest

import ember_ml
from ember_ml import nn, ops
from ember_ml.backend.selection import active
from ember_ml.training import Trainer, optimizers


def double(x: Any) -> Any:
    return ops.add(x, x)


@ember_ml.compile
def triple(x: Any) -> Any:
    return ops.multiply(x, 3.0)


def pickled(x: Any) -> Any:
    return pickle.loads(pickle.dumps(x))


COPIES = [copy.deepcopy, pickled]


@pytest.mark.parametrize("make", COPIES)
@pytest.mark.parametrize("is_compiled", [False, True])
def test_a_copy_of_a_trainer_goes_on_by_itself(backend: str, make: Callable[[Any], Any], is_compiled: bool) -> None:
    x, y = ops.random_normal((16, 3), seed=1), ops.ones((16, 1))
    ops.random.seed(0)
    first = Trainer(nn.Linear(3, 1), optimizers.Adam(0.05), compile=is_compiled, metrics=["mean_absolute_error"])
    first.progress = False
    first.fit(x, y, epochs=1, batch_size=8)
    second = make(first)
    before = ops.to_numpy(first.model.weight).tolist()
    losses = second.fit(x, y, epochs=3, batch_size=8)["loss"]
    assert ops.to_numpy(first.model.weight).tolist() == before
    assert first.fit(x, y, epochs=3, batch_size=8)["loss"] == pytest.approx(losses, rel=1e-5)


def test_copies_of_a_trainer_hold_no_gradients(backend: str) -> None:
    trainer = Trainer(nn.Linear(3, 1), optimizers.Adam(0.05), compile=False)
    kernels = active().optimizer_kernels
    assert kernels is not None
    for _ in range(2):
        trainer._step((ops.ones((4, 3)), ops.ones((4, 1))))
        assert (trainer._step.objective._last is not None) == kernels.is_in_place
    for make in COPIES:
        assert make(trainer)._step.objective._last is None


@pytest.mark.parametrize("make", COPIES)
def test_copies_of_compiled_functions(backend: str, make: Callable[[Any], Any]) -> None:
    assert ops.item(make(ember_ml.compile(double))(2.0)) == 4.0
    assert make(triple) is triple


@pytest.mark.parametrize("make", COPIES)
def test_copies_of_limits(make: Callable[[Any], Any]) -> None:
    for limits in (ops.finfo("float16"), ops.finfo("complex64"), ops.iinfo("uint8")):
        assert make(limits) == limits
        assert make(limits).max == limits.max
