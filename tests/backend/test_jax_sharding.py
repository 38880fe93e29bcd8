"""Programs of a group of processes on JAX, of which there is one here; ``tests/distributed`` has several."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ember_ml
from ember_ml import ops
from ember_ml.distributed import collectives


@pytest.fixture
def split() -> Any:
    jax = pytest.importorskip("jax")
    from ember_ml.backend.jax.processes import JAXGroup
    from ember_ml.backend.jax.sharding import Split

    with ember_ml.use_backend("jax"):
        yield Split((3, 2), JAXGroup("alone", 0, jax.devices()[:1]), collectives)


def test_compiled_functions_gather_parameters_in_a_program_of_all_processes(split: Any) -> None:
    whole = ops.reshape(ops.arange(6, dtype="float32"), (3, 2))
    part = split.part_of(whole)
    assert (part.shape, split.span()) == ((6,), (0, 6))

    def loss(part: Any, factor: Any) -> Any:
        return ops.sum(ops.multiply(ops.square(split.whole_of(part)), factor))

    def gradient(part: Any, factor: Any) -> Any:
        return ops.grad(loss)(part, factor)

    for factor in (ops.array(2.0), ops.array([[1.0], [2.0], [3.0]])):  # numbers and others are told apart
        expected = (np.arange(6.0).reshape(3, 2) ** 2 * ops.to_numpy(factor)).sum()
        assert float(ops.item(ember_ml.compile(loss)(part, factor))) == expected
        slope = 2 * np.arange(6.0).reshape(3, 2) * ops.to_numpy(factor)
        for function in (gradient, ember_ml.compile(gradient)):
            assert ops.to_numpy(function(part, factor)).tolist() == slope.reshape(-1).tolist()


def test_random_numbers_of_such_a_program_are_those_of_the_stream(split: Any) -> None:
    part = split.part_of(ops.ones((3, 2)))

    def draw(part: Any) -> Any:
        return ops.add(split.whole_of(part), ops.random_uniform((3, 2)))

    compiled, found = ember_ml.compile(draw), []
    for function in (draw, compiled):
        ops.seed(7)
        found.append([ops.to_numpy(function(part)).tolist() for _ in range(2)])
    assert found[0] == found[1]
    assert found[0][0] != found[0][1]
