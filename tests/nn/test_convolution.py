"""Convolutions and pooling as layers: sizes, names, formats, what is refused."""

from __future__ import annotations

import math
from typing import Any

import pytest

from ember_ml import nn, ops
from ember_ml.training import Trainer, optimizers
from tests.nn.layer_cases import flat, numbers


def test_weights_have_the_shapes_of_pytorch(backend: str) -> None:
    def shapes(layer: Any) -> dict[str, tuple[int, ...]]:
        return {name: x.shape for name, x in layer.named_variables().items()}

    assert shapes(nn.Conv2d(4, 6, (3, 5), groups=2)) == {"weight": (6, 2, 3, 5), "bias": (6,)}
    assert shapes(nn.Conv1d(4, 6, 3, bias=False)) == {"weight": (6, 4, 3)}
    assert shapes(nn.ConvTranspose2d(4, 6, (3, 5))) == {"weight": (4, 6, 3, 5), "bias": (6,)}
    assert shapes(nn.DepthwiseConv2d(4, 3, multiplier=2)) == {"weight": (8, 1, 3, 3), "bias": (8,)}
    assert shapes(nn.SeparableConv1d(4, 6, 3, multiplier=2)) == {
        "depthwise.weight": (8, 1, 3),
        "pointwise.weight": (6, 8, 1),
        "pointwise.bias": (6,),
    }


@pytest.mark.parametrize("kind", [nn.Conv2d, nn.ConvTranspose2d, nn.SeparableConv2d])
def test_both_formats_compute_the_same(kind: Any, backend: str) -> None:
    ops.random.seed(0)
    last = kind(3, 4, 2, strides=2)
    first = kind(3, 4, 2, strides=2, data_format="channels_first").load_state_dict(last.state_dict())
    x = ops.reshape(ops.array(numbers(120)), (2, 5, 4, 3))
    found = ops.moveaxis(first(ops.moveaxis(x, -1, 1)), 1, -1)
    assert flat(found) == pytest.approx(flat(last(x)), rel=1e-5, abs=1e-6)


def test_both_formats_learn_the_same(backend: str) -> None:
    x, y = ops.random_normal((4, 2, 6, 6), seed=1), ops.random_normal((4, 3, 6, 6), seed=2)
    x_last, y_last = (ops.transpose(z, (0, 2, 3, 1)) for z in (x, y))
    weights = ops.random_normal((3, 2, 3, 3), seed=3)
    losses, found = [], []
    for data_format, batch in (("channels_first", (x, y)), ("channels_last", (x_last, y_last))):
        layer = nn.Conv2d(2, 3, 3, padding="same", bias=False, data_format=data_format)
        trainer = Trainer(
            layer.load_state_dict({"weight": weights}), optimizers.Adam(0.05), "mean_squared_error", compile=False
        )
        losses.append([ops.item(trainer._step(batch)[0]) for _ in range(4)])
        found.append(ops.to_numpy(layer.weight))
    assert losses[1] == pytest.approx(losses[0], rel=1e-5)
    assert found[1] == pytest.approx(found[0], abs=1e-5)


def test_parameters_start_within_the_bounds_of_their_fan(backend: str) -> None:
    layer = nn.Conv2d(4, 32, 3)
    bound = 1.0 / math.sqrt(4 * 9)
    for values in (flat(layer.weight), flat(layer.bias)):
        assert bound * 0.8 < max(map(abs, values)) <= bound


def test_initializers_know_the_fans_of_convolutions(backend: str) -> None:
    weight = nn.Conv2d(16, 64, 3, initializer="glorot_uniform").weight
    bound = math.sqrt(6.0 / (16 * 9 + 64 * 9))
    assert bound * 0.95 < max(map(abs, flat(weight))) <= bound


def test_what_is_refused(backend: str) -> None:
    with pytest.raises(TypeError, match="Conv2d needs a kernel_size"):
        nn.Conv2d(3, 16)
    with pytest.raises(ValueError, match="3 inputs and 16 outputs cannot be split into 2 groups"):
        nn.Conv2d(3, 16, 3, groups=2)
    with pytest.raises(ValueError, match=r"Conv2d takes tensors of 4 dimensions.*not the shape \(8, 32, 32\)"):
        nn.Conv2d(16, kernel_size=3)(ops.ones((8, 32, 32)))
    with pytest.raises(ValueError, match="kernel_size"):
        nn.Conv2d(16, kernel_size=(3, 3, 3))
    with pytest.raises(ValueError, match="data_format"):
        nn.Conv2d(16, kernel_size=3, data_format="NCHW")
    with pytest.raises(ValueError, match="channels"):
        nn.Conv2d(3, 16, 3)(ops.ones((8, 32, 32, 4)))
    with pytest.raises(ValueError, match=r"MaxPool2d takes tensors of 4 dimensions.*not the shape \(8, 32, 3\)"):
        nn.MaxPool2d(2)(ops.ones((8, 32, 3)))
    with pytest.raises(ValueError, match="GlobalAvgPool takes"):
        nn.GlobalAvgPool()(ops.ones((8, 32)))


def test_a_layer_in_words() -> None:
    assert "inputs=3, kernel_size=(3, 3), strides=2, padding='same'" in repr(
        nn.Conv2d(3, 16, 3, strides=2, padding="same")
    )
    assert "448 parameters" in repr(nn.Conv2d(3, 16, 3))
    assert "pool_size=(2, 2)" in repr(nn.MaxPool2d(2))


@pytest.mark.long
def test_compiled_networks_take_batches_of_all_sizes(backend: str) -> None:
    ops.random.seed(0)
    model = nn.Sequential(
        *(nn.Conv2d(3, 4, 3, strides=2, padding="same"), nn.BatchNorm(4), nn.relu, nn.MaxPool2d(2)),
        *(nn.Conv2d(4, 4, 3), nn.GlobalAvgPool(), nn.Linear(4, 2)),
    )
    step = nn.value_and_grad(model, lambda x: ops.sum(ops.square(model(x))))
    program = ops.compile(step)
    for batch in (4, 3, 2):
        x = ops.reshape(ops.array(numbers(batch * 432)), (batch, 12, 12, 3))
        (want, gradients), (value, found) = step(x), program(x)
        assert ops.item(value) == pytest.approx(ops.item(want), rel=1e-4)
        for key in gradients:
            assert flat(found[key]) == pytest.approx(flat(gradients[key]), rel=1e-3, abs=1e-5)
