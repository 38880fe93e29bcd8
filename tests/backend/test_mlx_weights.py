"""The order in memory in which MLX's own BLAS on Linux reads weights fastest."""

from __future__ import annotations

from typing import Any

import pytest

import ember_ml
from ember_ml import nn, ops
from ember_ml.nn.generation import in_use

mx: Any = pytest.importorskip("mlx.core")
layout: Any = pytest.importorskip("ember_ml.backend.mlx.weight_layout")


def test_weights_are_arranged_once_and_keep_their_values() -> None:
    weight = mx.random.normal((3, 5))
    found = layout.arrange(weight)
    assert found.tolist() == weight.tolist()
    assert memoryview(found).strides == ((4, 12) if mx.default_device() == mx.cpu else (20, 4))
    assert layout.arrange(found) is found


@pytest.mark.parametrize("weight", [mx.ones((3,)), mx.ones((2, 3, 4)), mx.ones((3, 4), dtype=mx.bfloat16)])
def test_other_weights_stay(weight: Any) -> None:
    assert layout.arrange(weight) is weight


def test_a_model_in_use_is_arranged_and_one_that_is_trained_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    with ember_ml.use_backend("mlx"):
        monkeypatch.setattr(ember_ml.backend.load("mlx"), "weight_layout", layout)
        model = nn.Sequential(nn.Linear(4, 3), nn.Linear(2))

        def write() -> Any:
            with in_use(model):
                return ops.sum(model(ops.ones((1, 4))))

        nn.value_and_grad(model, write)
        assert memoryview(model[0].weight).strides == (16, 4)
        write()
        assert memoryview(model[0].weight).strides == ((4, 12) if mx.default_device() == mx.cpu else (16, 4))
        gradients = nn.value_and_grad(model, write)()[1]
        assert gradients["0.weight"].shape == (3, 4)


class _Normed(nn.Linear):
    """A linear map whose weight is computed, and not a parameter."""

    def build(self, shape: tuple[int, ...]) -> None:
        self.add_parameter("direction", (self.outputs, shape[-1]))

    def forward(self, x: Any) -> Any:
        return ops.linear(x, ops.divide(self.direction, ops.norm(self.direction)))


def test_linear_maps_without_a_weight_of_their_own_are_used_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    with ember_ml.use_backend("mlx"):
        monkeypatch.setattr(ember_ml.backend.load("mlx"), "weight_layout", layout)
        model = nn.Sequential(_Normed(4, 3), nn.Linear(2))
        with in_use(model):
            assert ops.shape(model(ops.ones((1, 4)))) == (1, 2)
