"""Layers against those of PyTorch: the same names, shapes, results, gradients and running statistics, on every backend.

PyTorch's layers have the channels second, so that is the format of the tensors here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ember_ml import nn, ops

torch: Any = pytest.importorskip("torch")

FIRST: dict[str, Any] = {"data_format": "channels_first"}
PAIRS: dict[str, tuple[Callable[[], Any], Callable[[], Any], tuple[int, ...]]] = {
    "Linear": (lambda: nn.Linear(3, 4), lambda: torch.nn.Linear(3, 4), (5, 3)),
    "LayerNorm": (lambda: nn.LayerNorm((4, 3)), lambda: torch.nn.LayerNorm((4, 3)), (2, 4, 3)),
    "RMSNorm": (lambda: nn.RMSNorm(3), lambda: torch.nn.RMSNorm(3, eps=1e-5), (2, 4, 3)),
    "BatchNorm of rows": (lambda: nn.BatchNorm(3), lambda: torch.nn.BatchNorm1d(3), (6, 3)),
    "BatchNorm": (lambda: nn.BatchNorm(3, **FIRST), lambda: torch.nn.BatchNorm2d(3), (4, 3, 5, 2)),
    "GroupNorm": (lambda: nn.GroupNorm(2, 4, **FIRST), lambda: torch.nn.GroupNorm(2, 4), (2, 4, 5)),
    "InstanceNorm": (
        lambda: nn.InstanceNorm(3, affine=True, **FIRST),
        lambda: torch.nn.InstanceNorm2d(3, affine=True),
        (2, 3, 4, 5),
    ),
    "Conv1d": (
        lambda: nn.Conv1d(4, 6, 3, 2, 1, 2, 2, **FIRST),
        lambda: torch.nn.Conv1d(4, 6, 3, 2, 1, 2, 2),
        (2, 4, 9),
    ),
    "Conv2d": (
        lambda: nn.Conv2d(3, 4, (3, 5), padding="same", **FIRST),
        lambda: torch.nn.Conv2d(3, 4, (3, 5), padding="same"),
        (2, 3, 5, 6),
    ),
    "Conv3d": (lambda: nn.Conv3d(2, 3, 2, **FIRST), lambda: torch.nn.Conv3d(2, 3, 2), (1, 2, 3, 4, 3)),
    "DepthwiseConv2d": (
        lambda: nn.DepthwiseConv2d(3, 3, 2, **FIRST),
        lambda: torch.nn.Conv2d(3, 6, 3, groups=3),
        (2, 3, 5, 4),
    ),
    "ConvTranspose1d": (
        lambda: nn.ConvTranspose1d(3, 2, 3, 2, 1, 1, **FIRST),
        lambda: torch.nn.ConvTranspose1d(3, 2, 3, 2, 1, 1),
        (2, 3, 5),
    ),
    "ConvTranspose2d": (
        lambda: nn.ConvTranspose2d(3, 2, (3, 2), (2, 1), dilation_rate=2, **FIRST),
        lambda: torch.nn.ConvTranspose2d(3, 2, (3, 2), (2, 1), dilation=2),
        (2, 3, 4, 5),
    ),
    "ConvTranspose3d": (
        lambda: nn.ConvTranspose3d(2, 3, 2, 2, **FIRST),
        lambda: torch.nn.ConvTranspose3d(2, 3, 2, 2),
        (1, 2, 2, 3, 2),
    ),
    "MaxPool2d": (lambda: nn.MaxPool2d(3, 2, 1, **FIRST), lambda: torch.nn.MaxPool2d(3, 2, 1), (2, 3, 7, 6)),
    "AvgPool2d": (
        lambda: nn.AvgPool2d(3, 2, 1, **FIRST),
        lambda: torch.nn.AvgPool2d(3, 2, 1, count_include_pad=False),
        (2, 3, 7, 6),
    ),
    "AdaptiveAvgPool2d": (
        lambda: nn.AdaptiveAvgPool2d((3, 2), **FIRST),
        lambda: torch.nn.AdaptiveAvgPool2d((3, 2)),
        (2, 3, 7, 6),
    ),
    "AdaptiveMaxPool1d": (
        lambda: nn.AdaptiveMaxPool1d(3, **FIRST),
        lambda: torch.nn.AdaptiveMaxPool1d(3),
        (2, 3, 7),
    ),
    "Flatten": (lambda: nn.Flatten(), lambda: torch.nn.Flatten(), (2, 3, 4)),
}


def pair(name: str) -> tuple[Any, Any, np.ndarray]:
    """Our layer in float64 with the parameters of PyTorch's, both trained, and an input."""
    ours, theirs, shape = PAIRS[name]
    layer, other = ours(), theirs().double()
    rng = np.random.default_rng(0)
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.copy_(torch.from_numpy(rng.normal(size=parameter.shape)))
    known = {key: x for key, x in other.state_dict().items() if key != "num_batches_tracked"}
    return layer.to_dtype("float64").load_state_dict(known), other, rng.normal(size=shape)


@pytest.mark.parametrize("name", PAIRS)
def test_results_and_gradients_are_those_of_pytorch(name: str, backend: str) -> None:
    layer, other, x = pair(name)
    want = other(torch.from_numpy(x))
    weights = np.cos(np.arange(want.numel())).reshape(want.shape)
    if list(other.parameters()):
        (want * torch.from_numpy(weights)).sum().backward()
    (_, found), gradients = nn.value_and_grad(
        layer, lambda x: (ops.sum(ops.multiply(y := layer(x), ops.asarray(weights))), y), has_aux=True
    )(ops.asarray(x))
    np.testing.assert_allclose(ops.to_numpy(found), want.detach().numpy(), rtol=1e-10, atol=1e-10)
    assert list(gradients) == [key for key, _ in other.named_parameters()]
    for key, parameter in other.named_parameters():
        np.testing.assert_allclose(ops.to_numpy(gradients[key]), parameter.grad.numpy(), rtol=1e-8, atol=1e-8)
    # what training has moved serves afterwards
    np.testing.assert_allclose(
        ops.to_numpy(layer.eval()(x)), other.eval()(torch.from_numpy(x)).detach().numpy(), rtol=1e-10, atol=1e-10
    )
    # and PyTorch takes our state as it is
    state = {key: torch.from_numpy(ops.to_numpy(value).copy()) for key, value in layer.state_dict().items()}
    other.load_state_dict(state)


def test_embeddings_are_those_of_pytorch(backend: str) -> None:
    other = torch.nn.Embedding(6, 3)
    layer = nn.Embedding(6, 3).load_state_dict(other.state_dict())
    words = np.array([[1, 5, 1], [0, 1, 5]])
    other(torch.from_numpy(words)).square().sum().backward()
    _, gradients = nn.value_and_grad(layer, lambda: ops.sum(ops.square(layer(words))))()
    np.testing.assert_allclose(ops.to_numpy(gradients["weight"]), other.weight.grad.numpy(), rtol=1e-6)


@pytest.mark.parametrize("kind", ["Linear", "Conv2d", "ConvTranspose2d"])
def test_layers_start_within_the_bounds_of_pytorch(kind: str, backend: str) -> None:
    ops.random.seed(0)
    torch.manual_seed(0)
    sizes = (40, 300) if kind == "Linear" else (10, 100, 5)
    layer, other = getattr(nn, kind)(*sizes), getattr(torch.nn, kind)(*sizes)
    for key, parameter in other.named_parameters():
        bound, found = parameter.abs().max().item(), np.abs(ops.to_numpy(getattr(layer, key))).max()
        assert found == pytest.approx(bound, rel=0.1 if key == "bias" else 0.02)
