"""Mixtures of experts: routing, balance, the layouts that few and many positions give."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from ember_ml import nn, ops
from ember_ml.nn import tensor
from tests.nn.layer_cases import flat, numbers
from tests.reference.layers import balance


def mixture(experts: int, top_k: int, width: int = 3) -> nn.MixtureOfExperts:
    ops.random.seed(1)
    return nn.MixtureOfExperts(experts, 4, top_k, inputs=width)


def by_hand(layer: Any, x: Any) -> list[float]:
    """Every expert for every position, and the weights of those that were not chosen 0."""
    rates = ops.softmax(ops.linear(x, layer.router))
    order = ops.argsort(ops.argsort(rates, descending=True))
    rates = ops.where(ops.less(order, layer.top_k), rates, 0.0)
    rates = ops.divide(rates, ops.sum(rates, -1, keepdims=True))
    total = ops.zeros_like(x)
    for expert in range(layer.experts):
        inner = ops.multiply(ops.silu(ops.linear(x, layer.gate[expert])), ops.linear(x, layer.up[expert]))
        total = ops.add(total, ops.multiply(rates[:, expert : expert + 1], ops.linear(inner, layer.down[expert])))
    return flat(total)


@pytest.mark.parametrize("count", [1, 2, 3, 8, 9, 40])
@pytest.mark.parametrize(("experts", "top_k"), [(1, 1), (4, 1), (4, 2), (5, 3), (3, 3), (8, 2)])
def test_each_position_goes_to_its_experts_whatever_their_number(
    count: int, experts: int, top_k: int, backend: str
) -> None:
    layer = mixture(experts, top_k)
    x = ops.reshape(ops.array(numbers(count * 3)), (count, 3))
    assert flat(layer(x)) == pytest.approx(by_hand(layer, x), rel=1e-5, abs=1e-6)


def test_all_positions_to_one_expert_lose_none(backend: str) -> None:
    layer = mixture(4, 1)
    layer.router = ops.array([[0.0] * 3, [0.0] * 3, [50.0] * 3, [0.0] * 3])
    x = ops.add(ops.abs(ops.reshape(ops.array(numbers(60)), (20, 3))), 0.1)
    assert flat(layer(x)) == pytest.approx(by_hand(layer, x), rel=1e-5, abs=1e-6)
    assert ops.item(layer.balance_loss) == pytest.approx(4.0, rel=1e-5)


def test_the_balance_is_one_where_shares_are_equal(backend: str) -> None:
    layer = mixture(4, 2)
    x = ops.reshape(ops.array(numbers(60)), (20, 3))
    layer(x)
    state = {key: ops.to_numpy(value) for key, value in layer.state_dict().items()}
    assert ops.item(layer.balance_loss) == pytest.approx(balance(ops.to_numpy(x), state, 2), rel=1e-5)
    layer.router = ops.zeros((4, 3))
    layer(x)
    assert ops.item(layer.balance_loss) == pytest.approx(1.0, rel=1e-6)


@pytest.mark.parametrize("portable", [False, True])
def test_the_balance_teaches_the_router(portable: bool, backend: str) -> None:
    layer = mixture(4, 1)
    x = ops.reshape((tensor if portable else ops).array(numbers(60)), (20, 3))

    def loss() -> Any:
        layer(x)
        return layer.balance_loss

    first, gradients = nn.value_and_grad(layer, loss)()
    assert flat(gradients["up"]) == [0.0] * 48
    layer.router = ops.subtract(layer.router, ops.multiply(gradients["router"], 0.05))
    assert ops.item(nn.value_and_grad(layer, loss)()[0]) < ops.item(first)
    assert ops.item(layer.balance_loss) == ops.item(nn.value_and_grad(layer, loss)()[0])
    copy.deepcopy(layer)


def test_no_positions_give_none(backend: str) -> None:
    assert ops.shape(mixture(4, 2)(ops.zeros((0, 3)))) == (0, 3)


def test_what_is_refused() -> None:
    with pytest.raises(ValueError, match="1 to 4 of 4 experts, not 5"):
        nn.MixtureOfExperts(4, 8, top_k=5)
    with pytest.raises(ValueError, match="'activations/silly'; did you mean 'activations/silu'"):
        nn.MixtureOfExperts(4, 8, activation="silly")
