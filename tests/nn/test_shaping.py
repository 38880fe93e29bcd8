"""Layers that change no number, blocks, roles, activations by name."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest

from ember_ml import nn, ops
from ember_ml.nn import tensor
from ember_ml.nn.layers import specialized
from ember_ml.nn.modules.activations import LeakyReLU, named
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
    assert named.get("gelu") is ops.gelu
    assert named.get("tanh") is ops.tanh
    slope = LeakyReLU(0.5)
    assert named.get(slope) is slope
    assert flat(named.get(None)([1.0])) == [1.0]
    assert [named.name_of(ops.gelu), named.name_of(slope)] == ["gelu", "LeakyReLU"]
    with pytest.raises(ValueError, match="no activation 'geluu'; there are celu, elu, gelu"):
        named.get("geluu")
    assert "activation='LeakyReLU'" in repr(nn.MLP(4, activation=slope))
