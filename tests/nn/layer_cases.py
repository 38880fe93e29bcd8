"""Every layer of channel mixing with small sizes: given, left out, and an input."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from ember_ml import nn, ops

__all__ = ["CASES", "Case", "flat", "numbers"]


class Case(NamedTuple):
    given: Callable[[], nn.Module]
    """With all sizes."""
    inferred: Callable[[], nn.Module] | None
    """With those sizes left out that can be."""
    shape: tuple[int, ...]
    """The shape of an input."""
    words: int = 0
    """Of an input of indices, how many there are."""

    def input(self) -> Any:
        """An input as nested lists."""
        size = math.prod(self.shape)
        found = [i * 7 % self.words for i in range(size)] if self.words else numbers(size)
        return _nested(iter(found), self.shape)


def numbers(count: int) -> list[float]:
    """As many numbers between -2 and 2, none of them special, each a float32."""
    return [round(((i * 37 + 11) % 101 - 50) / 25 + i % 7 / 64, 4) * 1024 // 1 / 1024 for i in range(count)]


def _nested(values: Iterator[Any], shape: tuple[int, ...]) -> Any:
    return [_nested(values, shape[1:]) for _ in range(shape[0])] if shape else next(values)


def flat(x: Any) -> list[float]:
    """The elements of a tensor of any kind."""
    return ops.to_numpy(x).ravel().tolist()


FIRST: dict[str, Any] = {"data_format": "channels_first"}
_pool = (2, 5, 4, 3)

CASES: dict[str, Case] = {
    "Linear": Case(lambda: nn.Linear(3, 4), lambda: nn.Linear(4), (2, 5, 3)),
    "MLP": Case(lambda: nn.MLP(4, inputs=3), lambda: nn.MLP(4), (2, 5, 3)),
    "MLP of its own": Case(
        lambda: nn.MLP(4, 2, 3, "tanh", bias=False), lambda: nn.MLP(4, 2, activation=ops.tanh, bias=False), (5, 3)
    ),
    "GatedMLP": Case(
        lambda: nn.GatedMLP(4, inputs=3, activation="sigmoid", bias=True),
        lambda: nn.GatedMLP(4, activation="sigmoid", bias=True),
        (2, 5, 3),
    ),
    "SwiGLU": Case(lambda: nn.SwiGLU(4, inputs=3), lambda: nn.SwiGLU(4), (2, 5, 3)),
    "GEGLU": Case(lambda: nn.GEGLU(4, inputs=3), lambda: nn.GEGLU(4), (2, 5, 3)),
    "MixtureOfExperts": Case(
        lambda: nn.MixtureOfExperts(4, 5, 2, inputs=3), lambda: nn.MixtureOfExperts(4, 5, 2), (2, 7, 3)
    ),
    "LayerNorm": Case(lambda: nn.LayerNorm(3), lambda: nn.LayerNorm(), (2, 5, 3)),
    "LayerNorm of two axes": Case(lambda: nn.LayerNorm((5, 3), bias=False), None, (2, 5, 3)),
    "RMSNorm": Case(lambda: nn.RMSNorm(3), lambda: nn.RMSNorm(), (2, 5, 3)),
    "BatchNorm": Case(lambda: nn.BatchNorm(3), lambda: nn.BatchNorm(), (4, 5, 3)),
    "BatchNorm first": Case(lambda: nn.BatchNorm(3, **FIRST), lambda: nn.BatchNorm(**FIRST), (4, 3, 2, 2)),
    "GroupNorm": Case(lambda: nn.GroupNorm(2, 4), lambda: nn.GroupNorm(2), (2, 5, 4)),
    "GroupNorm first": Case(lambda: nn.GroupNorm(2, 4, **FIRST), lambda: nn.GroupNorm(2, **FIRST), (2, 4, 5)),
    "InstanceNorm": Case(lambda: nn.InstanceNorm(3, affine=True), lambda: nn.InstanceNorm(affine=True), (2, 5, 3)),
    "Embedding": Case(lambda: nn.Embedding(5, 3), None, (2, 4), 5),
    "Conv1d": Case(
        lambda: nn.Conv1d(3, 4, 2, padding="causal"), lambda: nn.Conv1d(4, kernel_size=2, padding="causal"), (2, 5, 3)
    ),
    "Conv2d": Case(
        lambda: nn.Conv2d(3, 4, 3, strides=2, padding="same"),
        lambda: nn.Conv2d(4, kernel_size=3, strides=2, padding="same"),
        (2, 5, 4, 3),
    ),
    "Conv2d first": Case(
        lambda: nn.Conv2d(4, 6, (2, 3), groups=2, padding=1, dilation_rate=(1, 2), **FIRST),
        lambda: nn.Conv2d(6, kernel_size=(2, 3), groups=2, padding=1, dilation_rate=(1, 2), **FIRST),
        (2, 4, 5, 4),
    ),
    "Conv3d": Case(
        lambda: nn.Conv3d(2, 3, (1, 2, 2), bias=False),
        lambda: nn.Conv3d(3, kernel_size=(1, 2, 2), bias=False),
        (2, 2, 3, 3, 2),
    ),
    "DepthwiseConv1d": Case(lambda: nn.DepthwiseConv1d(3, 2), lambda: nn.DepthwiseConv1d(kernel_size=2), (2, 5, 3)),
    "DepthwiseConv2d": Case(
        lambda: nn.DepthwiseConv2d(3, 2, 2, padding="same"),
        lambda: nn.DepthwiseConv2d(kernel_size=2, multiplier=2, padding="same"),
        (2, 4, 3, 3),
    ),
    "DepthwiseConv3d": Case(
        lambda: nn.DepthwiseConv3d(2, 2), lambda: nn.DepthwiseConv3d(kernel_size=2), (2, 2, 3, 3, 2)
    ),
    "SeparableConv1d": Case(
        lambda: nn.SeparableConv1d(3, 4, 2, multiplier=2),
        lambda: nn.SeparableConv1d(4, kernel_size=2, multiplier=2),
        (2, 5, 3),
    ),
    "SeparableConv2d": Case(
        lambda: nn.SeparableConv2d(3, 2, 2, strides=2, **FIRST),
        lambda: nn.SeparableConv2d(2, kernel_size=2, strides=2, **FIRST),
        (2, 3, 4, 4),
    ),
    "SeparableConv3d": Case(
        lambda: nn.SeparableConv3d(2, 3, 2), lambda: nn.SeparableConv3d(3, kernel_size=2), (1, 2, 3, 3, 2)
    ),
    "ConvTranspose1d": Case(
        lambda: nn.ConvTranspose1d(3, 2, 3, strides=2, padding="same"),
        lambda: nn.ConvTranspose1d(2, kernel_size=3, strides=2, padding="same"),
        (2, 4, 3),
    ),
    "ConvTranspose2d": Case(
        lambda: nn.ConvTranspose2d(3, 2, 3, strides=2, padding=1, output_padding=1, **FIRST),
        lambda: nn.ConvTranspose2d(2, kernel_size=3, strides=2, padding=1, output_padding=1, **FIRST),
        (2, 3, 3, 2),
    ),
    "ConvTranspose3d": Case(
        lambda: nn.ConvTranspose3d(2, 3, 2, bias=False),
        lambda: nn.ConvTranspose3d(3, kernel_size=2, bias=False),
        (1, 2, 2, 3, 2),
    ),
    "MaxPool1d": Case(lambda: nn.MaxPool1d(2), None, (2, 5, 3)),
    "MaxPool2d": Case(lambda: nn.MaxPool2d(3, 2, padding="same"), None, _pool),
    "MaxPool3d": Case(lambda: nn.MaxPool3d((1, 2, 2), **FIRST), None, (1, 2, 2, 4, 4)),
    "AvgPool1d": Case(lambda: nn.AvgPool1d(3, 1), None, (2, 5, 3)),
    "AvgPool2d": Case(lambda: nn.AvgPool2d((2, 3), padding="same"), None, _pool),
    "AvgPool3d": Case(lambda: nn.AvgPool3d(2, **FIRST), None, (1, 2, 2, 4, 4)),
    "AdaptiveMaxPool1d": Case(lambda: nn.AdaptiveMaxPool1d(2), None, (2, 5, 3)),
    "AdaptiveMaxPool2d": Case(lambda: nn.AdaptiveMaxPool2d((2, 3)), None, _pool),
    "AdaptiveMaxPool3d": Case(lambda: nn.AdaptiveMaxPool3d(2, **FIRST), None, (1, 2, 3, 4, 4)),
    "AdaptiveAvgPool1d": Case(lambda: nn.AdaptiveAvgPool1d(2), None, (2, 5, 3)),
    "AdaptiveAvgPool2d": Case(lambda: nn.AdaptiveAvgPool2d((2, 3)), None, _pool),
    "AdaptiveAvgPool3d": Case(lambda: nn.AdaptiveAvgPool3d(2, **FIRST), None, (1, 2, 3, 4, 4)),
    "GlobalAvgPool": Case(lambda: nn.GlobalAvgPool(), None, _pool),
    "GlobalMaxPool": Case(lambda: nn.GlobalMaxPool("channels_first", keepdims=True), None, _pool),
    "Flatten": Case(lambda: nn.Flatten(), None, _pool),
    "Reshape": Case(lambda: nn.Reshape(3, -1), None, _pool),
    "Identity": Case(lambda: nn.Identity(), None, _pool),
    "Mask": Case(lambda: nn.Mask(), None, _pool),
    "Dropout": Case(lambda: nn.Dropout(0.0), None, _pool),
    "Residual": Case(lambda: nn.blocks.Residual(nn.LayerNorm(3), nn.Linear(3, 3)), None, (2, 5, 3)),
    "MixerBlock": Case(lambda: nn.blocks.MixerBlock(4, 5), None, (2, 3, 4)),
}
