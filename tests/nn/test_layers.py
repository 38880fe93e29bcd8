"""What holds for every layer: kinds of inputs, sizes left out, one seed, gradients, state, switches of the backend."""

from __future__ import annotations

import copy
import math
import pickle
from pathlib import Path
from typing import Any

import pytest

import ember_ml
from ember_ml import nn, ops
from ember_ml.backend import installed_backends
from ember_ml.nn import tensor
from ember_ml.nn.layers import channel_mixing
from ember_ml.nn.modules import activations
from tests.nn.layer_cases import CASES, flat
from tests.reference.layers import expected

WITH_PARAMETERS = [name for name, case in CASES.items() if case.given().num_parameters or name == "MixerBlock"]


def made(name: str, inferred: bool = False) -> Any:
    """The layer of a case from one seed, called once so that it has its sizes."""
    case = CASES[name]
    ops.random.seed(7)
    layer: Any = (case.inferred if inferred and case.inferred else case.given)()
    layer.eval()(case.input())
    return layer.train()


def scattered(name: str) -> Any:
    """The layer of a case with other parameters than it starts with: a weight of ones would hide its place."""
    layer = made(name)
    for parameter in layer.parameters():
        parameter.value = ops.add(parameter.value, ops.random_normal(parameter.shape, 0.0, 0.5))
    return layer


def state(layer: nn.Module) -> dict[str, list[float]]:
    return {name: flat(x) for name, x in layer.state_dict().items()}


def test_every_layer_has_a_case() -> None:
    layers = {*channel_mixing.__all__} - {"ChannelMixingLayer"}  # the base class computes nothing
    assert {name.partition(" ")[0] for name in CASES} >= layers
    for name in layers:
        assert getattr(nn, name) is getattr(channel_mixing, name)


@pytest.mark.parametrize("name", CASES)
def test_layers_compute_their_formulas(name: str, backend: str) -> None:
    layer, x = scattered(name), CASES[name].input()
    want = expected(name, x, {key: ops.to_numpy(y) for key, y in layer.state_dict().items()})
    found = layer(x)
    assert ops.shape(found) == want.shape
    assert flat(found) == pytest.approx(want.ravel().tolist(), rel=1e-5, abs=2e-6)


@pytest.mark.parametrize("name", CASES)
def test_anything_tensor_like_and_portable_for_portable(name: str, backend: str) -> None:
    layer, x = made(name).eval(), CASES[name].input()
    native = layer(ops.array(x))
    assert type(native) is ember_ml.backend.load(backend).tensor_type
    portable = layer(tensor.array(x))
    assert type(portable) is tensor.EmberTensor
    host = layer(ops.to_numpy(ops.array(x)))
    assert ops.is_tensor(layer(x))
    for other in (portable, host, layer(x)):
        assert flat(other) == flat(native)


@pytest.mark.parametrize("name", CASES)
def test_training_keeps_the_kind_too(name: str, backend: str) -> None:
    layer, x = made(name), CASES[name].input()
    assert type(layer(tensor.array(x))) is tensor.EmberTensor
    for variable in layer.named_variables().values():
        assert type(variable.held) is ember_ml.backend.load(backend).tensor_type


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.inferred])
def test_sizes_left_out_are_those_of_the_first_input(name: str, backend: str) -> None:
    case = CASES[name]
    assert case.inferred is not None
    unbuilt = case.inferred()
    assert unbuilt.num_parameters == 0
    given, inferred = made(name), made(name, inferred=True)
    assert state(inferred) == state(given)
    assert "unknown" not in repr(inferred)


@pytest.mark.parametrize("name", CASES)
def test_one_seed_gives_the_same_layer_on_every_backend(name: str, backend: str) -> None:
    layer, x = made(name), CASES[name].input()
    found, before = flat(layer(x)), state(made(name))
    with ember_ml.use_backend("numpy"):
        other = made(name)
        now = state(other)
        for key in dict(other.named_parameters()):
            assert now.pop(key) == before.pop(key)  # to the last bit
        for key, values in now.items():  # buffers, which the call computed
            assert values == pytest.approx(before[key], rel=1e-6)
        assert flat(made(name)(x)) == pytest.approx(found, rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("name", CASES)
def test_layers_follow_a_switch_between_calls(name: str, backend: str) -> None:
    layer, x = made(name), CASES[name].input()
    once, twice = flat(layer(x)), flat(layer(x))
    layer = made(name)
    assert flat(layer(x)) == once
    try:
        for other in installed_backends():
            ember_ml.set_backend(other)
            assert flat(copy.deepcopy(layer)(x)) == pytest.approx(twice, rel=1e-5, abs=1e-5)
    finally:
        ember_ml.set_backend(backend)


@pytest.mark.parametrize("name", CASES)
def test_state_goes_round(name: str, backend: str, tmp_path: Path) -> None:
    layer, x = made(name), CASES[name].input()
    layer(x)  # moves what is running
    want = flat(layer.eval()(x))
    other = made(name)
    for x_ in other.named_variables().values():
        x_.value = ops.zeros_like(x_.value)
    other.load_state_dict(layer.state_dict())
    assert flat(other.eval()(x)) == want
    if layer.state_dict():
        layer.save(tmp_path / "layer.safetensors")
        assert flat(made(name).load(tmp_path / "layer.safetensors").eval()(x)) == want
    for copied in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert flat(copied(x)) == want


@pytest.mark.parametrize("name", WITH_PARAMETERS)
def test_gradients_are_the_limits_of_differences(name: str, backend: str) -> None:
    layer, case = scattered(name).to_dtype("float64"), CASES[name]
    x: Any = case.input() if case.words else ops.array(case.input(), dtype="float64")

    def loss() -> Any:
        y = layer(x)
        weights = ops.reshape(ops.cos(ops.arange(ops.size(y), dtype="float64")), ops.shape(y))
        total = ops.sum(ops.multiply(ops.square(ops.add(y, 0.3)), weights))
        balance = getattr(layer, "balance_loss", None)
        return total if balance is None else ops.add(total, balance)

    value, gradients = nn.value_and_grad(layer, loss)()
    assert list(gradients) == list(layer.named_parameters())
    assert math.isfinite(ops.item(value))
    step = 1e-5
    for key, parameter in layer.named_parameters().items():
        start = ops.copy(parameter.value)
        places = range(0, parameter.size, max(parameter.size // 5, 1))
        found = flat(gradients[key])
        for place in places:
            values = []
            for sign in (1.0, -1.0):
                moved = ops.index_update(
                    ops.reshape(start, (-1,)), place, ops.add(ops.reshape(start, (-1,))[place], sign * step)
                )
                parameter.value = ops.reshape(moved, ops.shape(start))
                values.append(ops.item(loss()))
            difference = (values[0] - values[1]) / (2 * step)
            assert found[place] == pytest.approx(difference, rel=1e-6, abs=1e-6), f"{key}[{place}]"
        parameter.value = start


def test_what_has_no_parameters_works_in_sequence_with_activations(backend: str) -> None:
    model = nn.Sequential(
        *(nn.Conv2d(4, kernel_size=3, padding="same"), nn.BatchNorm(), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Dropout(0.1), nn.Linear(8), nn.gelu, nn.Linear(3), nn.Softmax()),
    )
    y = model.eval()(ops.ones((2, 8, 6, 3)))
    assert ops.shape(y) == (2, 3)
    assert flat(ops.sum(y, -1)) == pytest.approx([1.0, 1.0], abs=1e-6)
    value, gradients = nn.value_and_grad(model.train(), lambda x: ops.sum(ops.square(model(x))))(ops.ones((2, 8, 6, 3)))
    assert list(gradients) == list(model.trainable())
    assert math.isfinite(ops.item(value))


def test_activations_and_functions_are_shown_in_sequences() -> None:
    model = nn.Sequential(nn.Linear(2), nn.LeakyReLU(0.1), ops.tanh)
    assert repr(model).splitlines() == [
        "Sequential(  # sizes unknown until the first call",
        "  (0): Linear(inputs=None, outputs=2, has_bias=True)",
        "  (1): LeakyReLU(negative_slope=0.1)",
        "  (2): tanh",
        ")",
    ]
    model([[1.0, 2.0, 3.0]])
    assert "8 parameters" in repr(model)


def test_every_activation_is_a_name_of_nn() -> None:
    for name in activations.__all__:
        assert getattr(nn, name) is getattr(activations, name)


@pytest.mark.long
@pytest.mark.parametrize("name", ["BatchNorm", "MixtureOfExperts"])
def test_compiled_steps_do_what_plain_ones_do(name: str, backend: str) -> None:
    plain, compiled = made(name), made(name)
    x = ops.array(CASES[name].input())

    def step(layer: Any) -> Any:
        return nn.value_and_grad(layer, lambda x: ops.sum(ops.square(layer(x))))

    program = ops.compile(step(compiled))
    for _ in range(2):
        want, gradients = step(plain)(x)
        value, found = program(x)
        assert ops.item(value) == pytest.approx(ops.item(want), rel=1e-5)
        for key in gradients:
            assert flat(found[key]) == pytest.approx(flat(gradients[key]), rel=1e-4, abs=1e-5)
    for key, values in state(plain).items():
        assert state(compiled)[key] == pytest.approx(values, rel=1e-5, abs=1e-6)
