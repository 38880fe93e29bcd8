"""Memory: checkpointing changes no number, and statistics say what is known."""

from __future__ import annotations

from typing import Any

from ember_ml import memory, ops
from ember_ml.memory import GradientCheckpointing, manager
from tests.reference import close_enough


def _layers(weights: list[Any]) -> list[Any]:
    return [lambda h, w=w: ops.tanh(ops.matmul(h, w)) for w in weights]


def _loss(weights: list[Any], x: Any, checkpointing: GradientCheckpointing) -> Any:
    return ops.sum(checkpointing.chain(_layers(weights), x))


def test_checkpointing_changes_neither_value_nor_gradients(backend: str) -> None:
    weights = [ops.random_normal((4, 4), seed=layer) for layer in range(7)]
    x = ops.random_normal((3, 4), seed=99)
    (value, gradients), (other, others) = (
        ops.value_and_grad(_loss)(weights, x, GradientCheckpointing(enabled)) for enabled in (False, True)
    )
    assert close_enough(ops.to_numpy(value), ops.to_numpy(other), rtol=1e-6)
    for one, two in zip(gradients, others, strict=True):
        assert close_enough(ops.to_numpy(one), ops.to_numpy(two), rtol=1e-5, atol=1e-6)


def test_checkpoint_function_takes_its_arguments(backend: str) -> None:
    x, w = ops.ones((2, 3)), ops.ones((3, 3))
    gradient = ops.grad(lambda w: ops.sum(manager.checkpoint_function(ops.matmul, x, w)))(w)
    assert ops.to_numpy(gradient).tolist() == [[2.0] * 3] * 3


def test_checkpointed_dropout_draws_the_same_numbers_again(backend: str) -> None:
    x = ops.random_normal((4, 5), seed=1)

    def loss(x: Any, checkpointing: GradientCheckpointing) -> Any:
        return ops.sum(checkpointing.checkpoint(lambda h: ops.dropout(ops.exp(h), 0.5), x))

    found = []
    for enabled in (False, True):
        ops.seed(3)
        found.append(ops.to_numpy(ops.grad(loss)(x, GradientCheckpointing(enabled))))
    assert close_enough(found[0], found[1], rtol=1e-6)


def test_statistics_name_backend_and_device(backend: str) -> None:
    found = memory.statistics()
    assert (found.backend, found.device) == (backend, ops.get_default_device())
    assert found.total is None or found.total > 0
    assert str(found).startswith(f"{backend} on ")
