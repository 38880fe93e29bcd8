"""Where and in which dtype layers make their parameters."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from ember_ml import nn, ops
from ember_ml.errors import DeviceError
from ember_ml.nn import blocks
from ember_ml.nn.layers import channel_mixing, sequence_mixing
from ember_ml.nn.layers.base import Layer
from ember_ml.training import optimizers

# the arguments of each layer that has parameters, and the shape of an input
ARGUMENTS: dict[str, tuple[tuple[Any, ...], tuple[int, ...]]] = {
    "Linear": ((3,), (2, 3)),
    "MLP": ((4,), (2, 3)),
    "GatedMLP": ((4,), (2, 3)),
    "SwiGLU": ((4,), (2, 3)),
    "GEGLU": ((4,), (2, 3)),
    "MixtureOfExperts": ((4, 5, 2), (2, 3)),
    "LayerNorm": ((), (2, 3)),
    "RMSNorm": ((), (2, 3)),
    "BatchNorm": ((), (4, 3)),
    "GroupNorm": ((1,), (2, 5, 4)),
    "InstanceNorm": ((3, 1e-5, True), (2, 5, 3)),
    "Embedding": ((5, 3), (2, 4)),
    "Conv1d": ((3, 4, 2), (2, 5, 3)),
    "Conv2d": ((3, 4, 2), (2, 5, 4, 3)),
    "Conv3d": ((2, 3, 1), (1, 2, 2, 2, 2)),
    "DepthwiseConv1d": ((3, 2), (2, 5, 3)),
    "DepthwiseConv2d": ((3, 2), (2, 4, 3, 3)),
    "DepthwiseConv3d": ((2, 2), (1, 2, 2, 2, 2)),
    "SeparableConv1d": ((3, 4, 2), (2, 5, 3)),
    "SeparableConv2d": ((3, 4, 2), (2, 4, 4, 3)),
    "SeparableConv3d": ((2, 3, 2), (1, 2, 2, 2, 2)),
    "ConvTranspose1d": ((3, 2, 2), (2, 4, 3)),
    "ConvTranspose2d": ((3, 2, 2), (2, 3, 3, 3)),
    "ConvTranspose3d": ((2, 3, 2), (1, 2, 2, 2, 2)),
    "CFC": ((4,), (2, 3, 3)),
    "RNN": ((4,), (2, 3, 3)),
    "GRU": ((4,), (2, 3, 3)),
    "LSTM": ((4,), (2, 3, 3)),
    "Attention": ((8, 2), (2, 3, 8)),
    "CrossAttention": ((8, 2), (2, 3, 8)),
    "GroupedQueryAttention": ((8, 2), (2, 3, 8)),
    "LinearAttention": ((8, 2), (2, 3, 8)),
    "CausalConv1d": ((3, 4, 2), (2, 5, 3)),
    "StateSpace": ((4,), (2, 3, 4)),
    "MixerBlock": ((4, 5), (2, 3, 4)),
    "TransformerBlock": ((8, 2), (2, 3, 8)),
    "Transformer": ((8, 2, 2), (2, 3, 8)),
    "LanguageModel": ((5, 8, 1, 2), (2, 3)),
}
MORE: dict[str, dict[str, Any]] = {
    "Attention": {"qk_norm": "rms"},
    "TransformerBlock": {"qk_norm": "layer", "gated": True},
    "LanguageModel": {"length": 5, "tied": False},
}


def find_classes() -> dict[str, Any]:
    found = {name: getattr(part, name) for part in (channel_mixing, sequence_mixing, blocks) for name in part.__all__}
    return {name: x for name, x in found.items() if "dtype" in inspect.signature(x).parameters}


def make(name: str, dtype: str, device: str | None) -> Any:
    """Make the layer, and call it once so that it has all parameters."""
    arguments, shape = ARGUMENTS[name]
    made = find_classes()[name](*arguments, dtype=dtype, device=device, **MORE.get(name, {}))
    if name in ("Embedding", "LanguageModel"):
        made(ops.zeros(shape, "int64", device))
    elif name == "CrossAttention":
        made(ops.ones(shape, dtype, device), ops.ones(shape, dtype, device))
    else:
        made(ops.ones(shape, dtype, device))
    return made


def test_every_layer_with_a_dtype_takes_a_device() -> None:
    classes = find_classes()
    assert set(classes) == set(ARGUMENTS)
    for name, kind in classes.items():
        assert "device" in inspect.signature(kind).parameters, name


@pytest.mark.parametrize("name", ARGUMENTS)
def test_parameters_have_the_dtype_and_device_that_were_asked_for(
    backend: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    devices: dict[str, Any] = {}
    add = Layer.add_parameter

    def note(layer: Layer, parameter: str, *args: Any, **kwargs: Any) -> None:
        add(layer, parameter, *args, **kwargs)
        devices[f"{id(layer)} {parameter}"] = layer._device

    monkeypatch.setattr(Layer, "add_parameter", note)
    layer = make(name, "float64", "cpu")
    found = layer.named_variables()
    assert len(devices) == len(layer.named_parameters()) > 0
    assert set(devices.values()) == {"cpu"}
    assert {str(variable.dtype) for variable in found.values()} == {"float64"}
    assert {ops.get_device(variable.value) for variable in found.values()} == {"cpu"}


def test_a_device_changes_no_number(backend: str) -> None:
    def draw(device: str | None) -> list[float]:
        ops.random.seed(3)
        return ops.to_numpy(nn.Linear(3, 4, device=device).weight).ravel().tolist()

    assert draw("cpu") == draw(None)


def test_a_device_that_is_not_there_is_named(backend: str) -> None:
    with pytest.raises(DeviceError, match="warp:3"):
        nn.Linear(3, 4, device="warp:3")
    with nn.empty(), pytest.raises(DeviceError, match="warp:3"):
        nn.Linear(3, 4, device="warp:3")
    lazy = nn.Linear(4, device="warp:3")
    with pytest.raises(DeviceError, match="warp:3"):
        lazy(ops.ones((2, 3)))


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_precision_from_the_start(backend: str, dtype: str) -> None:
    layer = nn.Linear(3, 4, dtype=dtype, device="cpu")
    assert str(ops.dtype(layer(ops.ones((2, 3), dtype, device="cpu")))) == dtype


def test_an_initializer_of_ones_own_keeps_its_tensor(backend: str) -> None:
    shared = ops.ones((3, 2))
    first, second = (nn.Linear(2, 3, initializer=lambda shape, dtype: shared) for _ in range(2))
    first.weight = ops.multiply(first.weight, 0.0)
    optimizers.SGD(1.0).update(second, {"weight": ops.ones((3, 2)), "bias": ops.zeros(3)})
    assert ops.to_numpy(shared).tolist() == [[1.0, 1.0]] * 3
    assert ops.to_numpy(second.weight).tolist() == [[0.0, 0.0]] * 3
