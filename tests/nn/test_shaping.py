"""Layers that change no number, blocks, roles, activations by name."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pytest

from ember_ml import nn, ops
from ember_ml.config import registry
from ember_ml.nn import tensor
from ember_ml.nn.layers import specialized
from ember_ml.nn.modules.activations import GELU, LeakyReLU
from ember_ml.nn.modules.activations.activation import Activation
from tests.nn.layer_cases import flat


def test_flatten_and_reshape_undo_each_other(backend: str) -> None:
    x = ops.reshape(ops.arange(24.0), (2, 3, 4))
    assert flat(nn.Sequential(nn.Flatten(), nn.Reshape(3, 4))(x)) == flat(x)
    assert ops.shape(nn.Flatten(2)(x)) == (2, 3, 4)
    assert ops.shape(nn.Flatten()([1.0, 2.0])) == (2, 1)
    assert ops.shape(nn.Flatten()(ops.ones((0, 3, 4)))) == (0, 12)
    with pytest.raises(ValueError, match="keeps 4 dimensions"):
        nn.Flatten(4)(x)
    with pytest.raises(ValueError, match="from the front"):
        nn.Flatten(-1)


def test_masks_hide_what_is_not_a_number(backend: str) -> None:
    x = [[[1.0, 2.0], [math.nan, math.inf]]]
    assert flat(nn.Mask()(x, [[True, False]])) == [1.0, 2.0, 0.0, 0.0]
    assert flat(nn.Mask()([[[1.0, 2.0], [3.0, 4.0]]], [[0.5, 2.0]])) == [0.5, 1.0, 6.0, 8.0]
    assert flat(nn.Mask()([[1.0, 2.0]], [[False, True]])) == [0.0, 2.0]
    assert type(nn.Mask()(tensor.array([[1.0]]), [[True]])) is tensor.EmberTensor
    half = nn.Mask()(ops.array([[1.0]], dtype="float16"), [[True]])
    assert ops.dtype(half) == tensor.float16


def test_residual_blocks_have_the_names_of_their_parts(backend: str) -> None:
    block = nn.blocks.Residual(nn.LayerNorm(3), nn.MLP(4, inputs=3))
    assert list(block.named_parameters())[:3] == ["0.weight", "0.bias", "1.up.weight"]
    with pytest.raises(ValueError, match="at least one"):
        nn.blocks.Residual()


def test_mixer_blocks_take_three_dimensions(backend: str) -> None:
    with pytest.raises(ValueError, match=r"\(batch, positions, channels\)"):
        nn.blocks.MixerBlock(4, 5)(ops.ones((2, 3)))
    block = nn.blocks.MixerBlock(4, 5, dropout=0.5)
    block(ops.ones((2, 3, 4)))
    assert block.num_parameters == 2 * (4 + 4) + (3 * 4 + 4 + 4 * 3 + 3) + (4 * 5 + 5 + 5 * 4 + 4)


def test_dropout_of_hidden_numbers_in_training_only(backend: str) -> None:
    ops.random.seed(0)
    layer = nn.MLP(64, inputs=3, dropout=0.5)
    x = ops.ones((2, 3))
    assert flat(layer(x)) != flat(layer(x))
    assert flat(layer.eval()(x)) == flat(layer(x))


@pytest.fixture
def excitation() -> Iterator[str]:
    @specialized.register_role("excitation")
    def excite(x: tensor.TensorLike) -> tensor.Tensor:
        return ops.multiply(x, 2.0)

    yield "excitation"
    specialized._ROLES.pop("excitation")


def test_roles(backend: str, excitation: str) -> None:
    assert specialized.roles()[:3] == ("default", "memory", "inhibition")
    for role, factor in (("default", 1.0), ("memory", 0.95), ("inhibition", -0.5), (excitation, 2.0)):
        layer = specialized.Specialized(role)
        assert flat(layer([1.0, -2.0])) == pytest.approx([factor, -2.0 * factor])
        assert not isinstance(layer(ops.array([1.0])), tensor.EmberTensor)
        assert isinstance(layer(tensor.array([1.0])), tensor.EmberTensor)
        assert specialized.SpecializedProcessor(role).process([3.0]).tolist() == pytest.approx([3.0 * factor])
    assert repr(specialized.Specialized("memory")) == "Specialized(role='memory')"
    with pytest.raises(ValueError, match="no role 'memmory'; there are default, memory, inhibition"):
        specialized.Specialized("memmory")


def test_activations_by_name(backend: str) -> None:
    slope = LeakyReLU(0.5)
    assert type(nn.MLP(4, activation="gelu").activation) is GELU
    assert nn.MLP(4, activation=slope).activation is slope
    assert "(activation): LeakyReLU(negative_slope=0.5)" in repr(nn.MLP(4, activation=slope))
    assert "activation='relu'" in repr(nn.MLP(4, activation=ops.relu))
    with pytest.raises(ValueError, match="'activations/geluu'; did you mean 'activations/gelu'"):
        nn.MLP(4, activation="geluu")


def test_an_activation_of_ones_own_is_used_by_its_name(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry._default, "_things", dict(registry._default._things))

    @registry.register("activations/doubling")
    class Doubling(Activation):
        def forward(self, x: Any) -> Any:
            return ops.multiply(x, 2.0)

    layer = nn.MLP(2, inputs=2, bias=False, activation="doubling")
    layer.up.weight, layer.down.weight = [[1.0, 0.0], [0.0, 3.0]], [[1.0, 0.0], [0.0, 1.0]]
    assert flat(layer([1.0, 1.0])) == [2.0, 6.0]


def test_the_slope_of_a_named_prelu_is_trained(backend: str) -> None:
    layer = nn.MLP(1, inputs=1, bias=False, activation="prelu")
    layer.up.weight, layer.down.weight = [[1.0]], [[2.0]]
    _, gradients = nn.value_and_grad(layer, lambda x: ops.sum(layer(x)))(ops.array([[-3.0]]))
    assert flat(gradients["activation.weight"]) == [-6.0]
