"""Convolution, linear attention, state spaces and continuous time against their definitions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import ember_ml
from ember_ml import nn, ops
from ember_ml.tensor import EmberTensor
from tests.nn.checking import check_gradients, check_state_round_trip, check_switch, host, largest_difference
from tests.reference.sequences import causal_convolution, cfc, linear_attention, state_space

LAYERS: dict[str, Callable[..., Any]] = {
    "conv": lambda dtype="float32": nn.CausalConv1d(4, 6, 3, dilation_rate=2, groups=2, dtype=dtype),
    "linear attention": lambda dtype="float32": nn.LinearAttention(4, 2, causal=True, chunk=3, dtype=dtype),
    "state space": lambda dtype="float32": nn.StateSpace(4, 3, dtype=dtype),
    "continuous": lambda dtype="float32": nn.CFC(4, 6, backbone=5, dtype=dtype),
}


def inputs(*shape: int, dtype: str = "float64", seed: int = 1) -> Any:
    return ops.random_normal(shape, dtype=dtype, seed=seed)


@pytest.mark.parametrize(("size", "dilation", "groups"), [(1, 1, 1), (3, 1, 1), (2, 3, 2), (4, 2, 4)])
def test_causal_convolution(backend: str, size: int, dilation: int, groups: int) -> None:
    layer = nn.CausalConv1d(8, kernel_size=size, dilation_rate=dilation, groups=groups, dtype="float64")
    x = inputs(2, 7, 4)
    y = layer(x)
    assert tuple(layer.weight.shape) == (8, 4 // groups, size)
    assert largest_difference(y, causal_convolution(ops.to_numpy(x), host(layer), dilation, groups)) < 1e-12


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("length", [1, 3, 7, 8])
def test_linear_attention(backend: str, causal: bool, length: int) -> None:
    layer, x = nn.LinearAttention(6, 2, causal, chunk=4, dtype="float64"), inputs(2, length, 6)
    assert largest_difference(layer(x), linear_attention(ops.to_numpy(x), host(layer), 2, causal)) < 1e-12
    mask = [[[float(t != 1)] for t in range(length)], [[0.0]] * length]
    want = linear_attention(ops.to_numpy(x), host(layer), 2, causal, mask)
    assert largest_difference(layer(x, mask), want) < 1e-12


@pytest.mark.parametrize("length", [1, 2, 9])
def test_state_space(backend: str, length: int) -> None:
    layer, x = nn.StateSpace(5, 3, rank=2, dtype="float64"), inputs(2, length, 5)
    assert largest_difference(layer(x), state_space(ops.to_numpy(x), host(layer), 3)) < 1e-12


def test_state_space_starts_with_small_steps(backend: str) -> None:
    steps = ops.to_numpy(ops.softplus(nn.StateSpace(200).step.bias))
    assert 0.00099 < steps.min() < 0.002
    assert 0.05 < steps.max() < 0.1001


def test_continuous_time(backend: str) -> None:
    layer, x, times = nn.CFC(6, backbone=7, dtype="float64"), inputs(2, 5, 4), ops.exp(inputs(2, 5, seed=2))
    found = layer(x, times=times)
    assert largest_difference(found, cfc(ops.to_numpy(x), host(layer), 6, ops.to_numpy(times))) < 1e-12
    ones = ops.ones((2, 5), dtype="float64")
    assert largest_difference(layer(x), layer(x, times=ones)) < 1e-14
    with pytest.raises(ValueError, match=r"times of CFC are \(batch, length\) = \(2, 5\)"):
        layer(x, times=[1.0])


@pytest.mark.parametrize("name", LAYERS)
def test_gradients(backend: str, name: str) -> None:
    layer, x = LAYERS[name]("float64"), inputs(2, 4, 4)
    check_gradients(layer, lambda: layer(x))
    if name == "continuous":
        times = ops.exp(inputs(2, 4, seed=2))
        check_gradients(layer, lambda: layer(x, times=times))


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("parts", [(1,) * 7, (4, 3)])
def test_two_calls_with_the_state_are_one_call(backend: str, name: str, parts: tuple[int, ...]) -> None:
    layer, x = LAYERS[name]("float64"), inputs(2, 7, 4)
    state, found, first = layer.initial_state(2), [], 0
    for count in parts:
        y, state = layer(x[:, first : first + count], state=state)
        found.append(y)
        first += count
    assert largest_difference(ops.concatenate(found, axis=1), layer(x)) < 1e-12


@pytest.mark.parametrize("name", LAYERS)
def test_nothing_later_matters(backend: str, name: str) -> None:
    layer, x, other = LAYERS[name]("float64"), inputs(1, 6, 4), inputs(1, 6, 4, seed=9)
    count_change = ops.concatenate([x[:, :4], other[:, 4:]], axis=1)
    assert largest_difference(layer(x)[:, :4], layer(count_change)[:, :4]) < 1e-14
    assert largest_difference(layer(x)[:, 4:], layer(count_change)[:, 4:]) > 1e-3


@pytest.mark.parametrize("name", LAYERS)
def test_switch_state_masks_and_kinds(backend: str, name: str) -> None:
    layer, x = LAYERS[name](), inputs(2, 5, 4, dtype="float32")
    check_switch(backend, lambda: layer(x))
    check_state_round_trip(LAYERS[name], lambda layer: layer(x))
    assert type(layer(nn.tensor.convert_to_tensor(ops.to_numpy(x)))) is EmberTensor
    assert largest_difference(layer(ops.to_numpy(x).tolist()), layer(x)) < 1e-6
    if name != "linear attention":  # of which a mask also hides the keys
        mask = inputs(2, 5, 4, dtype="float32", seed=3)
        assert largest_difference(layer(x, mask), layer(ops.multiply(x, mask))) < 1e-6
    with pytest.raises(ValueError, match=r"takes x of shape \(batch, length, width\), not \(4, 4\)"):
        layer(ops.ones((4, 4)))


@pytest.mark.parametrize("name", LAYERS)
def test_one_seed_gives_the_same_parameters_everywhere(backend: str, name: str) -> None:
    def made() -> dict[str, Any]:
        ops.random.seed(5)
        return {name: x.tolist() for name, x in host(LAYERS[name]()).items()}

    found = made()
    with ember_ml.use_backend("numpy"):
        assert made() == found


@pytest.mark.long
@pytest.mark.parametrize("name", ["linear attention", "state space"])
def test_compiled(backend: str, name: str) -> None:
    layer, x = LAYERS[name](), inputs(2, 5, 4, dtype="float32")
    step = nn.value_and_grad(layer, lambda x: ops.sum(ops.square(layer(x))))
    value, gradients = step(x)
    found, compiled = ember_ml.compile(step)(x)
    assert ops.item(found) == pytest.approx(ops.item(value), rel=1e-5)
    assert all(largest_difference(compiled[name], x) < 1e-4 for name, x in gradients.items())


def test_mistakes_are_explained(backend: str) -> None:
    with pytest.raises(ValueError, match="2 groups of CausalConv1d do not divide its 3 inputs"):
        nn.CausalConv1d(3, 4, groups=2)
    with pytest.raises(ValueError, match="3 heads of LinearAttention do not divide"):
        nn.LinearAttention(8, 3)
    layer = nn.LinearAttention(4)
    with pytest.raises(ValueError, match="only a causal LinearAttention carries a state"):
        layer(ops.ones((1, 2, 4)), state=layer.initial_state(1))
    with pytest.raises(ValueError, match="StateSpace needs"):
        nn.StateSpace(4, 0)
    with pytest.raises(NotImplementedError, match="carries no state"):
        nn.SequenceMixingLayer().initial_state(1)
