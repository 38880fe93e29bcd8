"""Normalizations: statistics of the batch and running ones, modes, what is refused."""

from __future__ import annotations

from typing import Any

import pytest

import ember_ml
from ember_ml import nn, ops
from ember_ml.backend import installed_backends
from ember_ml.nn import tensor
from tests.nn.layer_cases import CASES, flat
from tests.reference.layers import running


@pytest.mark.parametrize(("name", "axis"), [("BatchNorm", -1), ("BatchNorm first", 1)])
def test_running_statistics_move_in_training_only(name: str, axis: int, backend: str) -> None:
    case = CASES[name]
    layer: Any = case.given()
    x = ops.array(case.input())
    mean, variance = ops.to_numpy(layer.running_mean), ops.to_numpy(layer.running_var)
    for step in range(3):
        batch = ops.add(x, float(step))
        mean, variance = running(ops.to_numpy(batch), axis, 0.1, mean, variance)
        layer(batch)
    assert flat(layer.running_mean) == pytest.approx(mean.tolist(), rel=1e-5)
    assert flat(layer.running_var) == pytest.approx(variance.tolist(), rel=1e-5)
    before = flat(layer.running_mean)
    layer.eval()(x)
    assert flat(layer.running_mean) == before


def test_in_use_the_running_statistics_serve(backend: str) -> None:
    layer = nn.BatchNorm(2).eval()
    layer.load_state_dict(
        {"weight": [2.0, 1.0], "bias": [0.0, 1.0], "running_mean": [1.0, 10.0], "running_var": [4.0, 25.0]}
    )
    assert flat(layer([[3.0, 20.0]])) == pytest.approx([2.0, 3.0], rel=1e-5)


def test_running_statistics_are_saved_and_not_trained(backend: str) -> None:
    layer = nn.BatchNorm(2)
    assert list(layer.state_dict()) == ["weight", "bias", "running_mean", "running_var"]
    assert list(layer.trainable()) == ["weight", "bias"]
    x = ops.array([[1.0, 2.0], [3.0, 5.0], [4.0, -2.0]])
    _, gradients = nn.value_and_grad(layer, lambda: ops.sum(ops.square(layer(x))))()
    assert list(gradients) == ["weight", "bias"]
    assert type(layer.running_mean) is ember_ml.backend.load(backend).tensor_type
    assert flat(layer.running_mean) == pytest.approx([0.1 * 8 / 3, 0.1 * 5 / 3], rel=1e-5)


def test_running_statistics_are_plain_tensors_after_gradients_by_the_input(backend: str) -> None:
    x = ops.array([[1.0, 2.0], [3.0, 5.0], [4.0, -2.0]])
    for batch in (x, tensor.EmberTensor(x)):
        layer = nn.BatchNorm(2)
        ember_ml.grad(lambda x, layer=layer: ops.sum(ops.square(layer(x))))(batch)
        assert type(layer.running_mean) is type(layer.eval()(x)) is ember_ml.backend.load(backend).tensor_type
        assert flat(layer.running_mean) == pytest.approx([0.1 * 8 / 3, 0.1 * 5 / 3], rel=1e-5)


def test_running_statistics_keep_their_dtype(backend: str) -> None:
    layer = nn.BatchNorm(2)
    layer(ops.array([[1.0, 2.0], [3.0, 5.0]], dtype="float64"))
    layer(tensor.array([[1.0, 2.0], [3.0, 5.0]], dtype="float64"))
    assert layer.variable("running_mean").dtype == tensor.float32
    assert layer.variable("running_var").dtype == tensor.float32


def test_a_batch_in_training_depends_on_itself_alone(backend: str) -> None:
    """In training the running statistics do not matter; a switch of the backend in the middle changes nothing."""
    x = CASES["BatchNorm"].input()
    one, two = nn.BatchNorm(), nn.BatchNorm()
    try:
        for place, name in enumerate(installed_backends()):
            ember_ml.set_backend(backend)
            want = flat(one(ops.add(x, float(place))))
            ember_ml.set_backend(name)
            assert flat(two(ops.add(x, float(place)))) == pytest.approx(want, abs=1e-5)
        assert flat(two.running_var) == pytest.approx(flat(one.running_var), rel=1e-5)
    finally:
        ember_ml.set_backend(backend)


def test_gradients_of_portable_batches_are_those_of_native_ones(backend: str) -> None:
    layer, x = nn.BatchNorm(3), ops.array([[1.0, 2.0, 4.0], [0.5, -1.0, 3.0], [2.0, 0.0, 1.0]])

    def loss(x: Any) -> Any:
        return ops.sum(ops.sin(layer(x)))

    slopes = flat(ember_ml.grad(loss)(x))
    _, gradients = nn.value_and_grad(layer, loss)(x)
    assert flat(ember_ml.grad(loss)(tensor.EmberTensor(x))) == pytest.approx(slopes, abs=1e-6)
    _, found = nn.value_and_grad(layer, loss)(tensor.EmberTensor(x))
    assert {name: flat(g) for name, g in found.items()} == {
        name: pytest.approx(flat(g), abs=1e-6) for name, g in gradients.items()
    }
    assert type(layer.running_mean) is ember_ml.backend.load(backend).tensor_type


def test_without_affine_there_are_no_parameters(backend: str) -> None:
    x = [[1.0, 3.0, 5.0, -1.0], [2.0, 2.5, 0.0, 4.0]]
    for layer in (nn.LayerNorm(affine=False), nn.RMSNorm(affine=False), nn.BatchNorm(affine=False)):
        layer(x)
        assert layer.num_parameters == 0
    assert nn.GroupNorm(2, 4, affine=False).num_parameters == nn.InstanceNorm(4).num_parameters == 0
    assert list(nn.LayerNorm(4, bias=False).named_parameters()) == ["weight"]


def test_what_is_refused(backend: str) -> None:
    with pytest.raises(ValueError, match="more than one number for each channel"):
        nn.BatchNorm()([[1.0, 2.0]])
    with pytest.raises(ValueError, match=r"BatchNorm takes \(batch, ..., channels\)"):
        nn.BatchNorm()([1.0, 2.0])
    with pytest.raises(ValueError, match="data_format"):
        nn.GroupNorm(2, data_format="last")
    with pytest.raises(ValueError, match="groups"):
        nn.GroupNorm(3)([[1.0, 2.0, 3.0, 4.0]])
    with pytest.raises(ValueError, match="gamma"):
        nn.LayerNorm(3)([[1.0, 2.0]])


def test_half_precision_is_kept(backend: str) -> None:
    x = ops.array([[1.0, 2.0, 4.0], [0.5, -1.0, 3.0]], dtype="float16")
    for layer in (nn.LayerNorm(3), nn.RMSNorm(3), nn.BatchNorm(3), nn.GroupNorm(1, 3)):
        y = layer.to_dtype("float16")(x)
        assert ops.dtype(y) == tensor.float16
        want = flat(layer.to_dtype("float32")(ops.cast(x, "float32")))
        assert flat(y) == pytest.approx(want, abs=5e-3)
