"""ResNet (He et al., 2015): convolutions whose blocks learn what to add to their input.

A 7x7 convolution and a maximum over 3x3 make the image a quarter as high and wide. Then come stages, each with half the
height and width of the one before: blocks ``act(x + f(x))``, where ``f`` is two 3x3 convolutions, or a 1x1, a 3x3 and a
1x1 with a quarter of the channels between them. Each convolution is followed by a batch norm. Where the shape changes,
``x`` goes through a 1x1 convolution.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

from ember_ml import ops
from ember_ml.models.activations import ACTIVATIONS
from ember_ml.models.image_encoder import check_images
from ember_ml.models.names import Names
from ember_ml.models.pretrained import PretrainedModel
from ember_ml.models.settings import Settings, count_labels
from ember_ml.nn.layers.channel_mixing import BatchNorm, Conv2d, Linear
from ember_ml.nn.modules.module import Module
from ember_ml.nn.modules.parameter import Buffer
from ember_ml.typing import Tensor, TensorLike

__all__ = ["ResNet", "ResNetClassifier"]

_PARTS = {"map": "convolution", "norm": "normalization"}
_BLOCK = "resnet.encoder.stages.{}.layers.{}"
_TABLE = {
    **{f"stem.{ours}": f"resnet.embedder.embedder.{theirs}" for ours, theirs in _PARTS.items()},
    **{f"stages.{{}}.{{}}.parts.{{}}.{ours}": f"{_BLOCK}.layer.{{}}.{theirs}" for ours, theirs in _PARTS.items()},
    **{f"stages.{{}}.{{}}.shortcut.{ours}": f"{_BLOCK}.shortcut.{theirs}" for ours, theirs in _PARTS.items()},
    "classifier": "classifier.1",
}
_QUARTER = 4
"""How much narrower the middle of a block of three convolutions is."""
_WIDEST = 1_000_000
"""Channels: batch norms make vectors of that length before the weights are seen."""


class _CountingNorm(BatchNorm):
    """A batch norm that counts the batches of training, as files of PyTorch do."""

    num_batches_tracked: Any

    def _make(self, channels: int) -> None:
        super()._make(channels)
        self.num_batches_tracked = Buffer(ops.zeros((), "int64"))

    def forward(self, x: TensorLike) -> Tensor:
        if self.training:
            self.num_batches_tracked = ops.add(self.num_batches_tracked, 1)
        return super().forward(x)


class _Convolution(Module):
    """``act(norm(convolution(x)))``"""

    def __init__(
        self, inputs: int, outputs: int, size: int, stride: int, activation: Callable[[Any], Any] | None
    ) -> None:
        self.map = Conv2d(inputs, outputs, size, stride, padding=size // 2, bias=False)
        self.norm, self._activation = _CountingNorm(outputs), activation

    def forward(self, x: Tensor) -> Tensor:
        found = self.norm(self.map(x))
        return found if self._activation is None else self._activation(found)


class _Block(Module):
    shortcut: _Convolution

    def __init__(self, settings: Settings, inputs: int, outputs: int, stride: int) -> None:
        if settings.choice("layer_type", {"basic": False, "bottleneck": True}, "bottleneck"):
            middle = max(outputs // _QUARTER, 1)
            is_early = settings.flag("downsample_in_bottleneck", False)
            sizes = [(1, stride if is_early else 1), (3, 1 if is_early else stride), (1, 1)]
            widths = [inputs, middle, middle, outputs]
        else:
            sizes, widths = [(3, stride), (3, 1)], [inputs, outputs, outputs]
        last = len(sizes) - 1
        self.parts = [
            _Convolution(*pair, *size, ops.relu if number < last else None)
            for number, (pair, size) in enumerate(zip(pairwise(widths), sizes, strict=True))
        ]
        self._has_shortcut = inputs != outputs or stride != 1
        if self._has_shortcut:
            self.shortcut = _Convolution(inputs, outputs, 1, stride, None)
        self._activation = settings.choice("hidden_act", ACTIVATIONS, "relu")

    def forward(self, x: Tensor) -> Tensor:
        found = x
        for part in self.parts:
            found = part(found)
        return self._activation(ops.add(found, self.shortcut(x) if self._has_shortcut else x))


class ResNet(PretrainedModel):
    """A ResNet without a head: (batch, height, width, channels) features of images."""

    has_head: bool = False
    names: Names
    stem: Any
    stages: list[Any]

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        names = Names(_TABLE, "resnet.", ignored=() if self.has_head else (r"^classifier\.",))
        self.names = names if self.has_head else names.without_prefix()
        self.channels: int = settings.integer("num_channels", 3)
        widths = settings.integers("hidden_sizes", [256, 512, 1024, 2048], most=_WIDEST)
        depths = settings.integers("depths", [3, 4, 6, 3], len(widths), most=1000)
        first = settings.integer("embedding_size", 64, most=_WIDEST)
        self.stem = _Convolution(self.channels, first, 7, 2, settings.choice("hidden_act", ACTIVATIONS, "relu"))
        strides = [2 if settings.flag("downsample_in_first_stage", False) else 1, *[2] * (len(widths) - 1)]
        self.stages = [
            [_Block(settings, outputs if i else inputs, outputs, 1 if i else stride) for i in range(depth)]
            for (inputs, outputs), depth, stride in zip(pairwise([first, *widths]), depths, strides, strict=True)
        ]
        self.width: int = widths[-1]

    def forward(self, images: TensorLike) -> Tensor:
        return self.features(images)

    def features(self, images: TensorLike) -> Tensor:
        """What the last stage makes of (batch, height, width, channels) images."""
        x = self.stem(check_images(images, self.channels, self.stem.map.weight.dtype))
        x = ops.max_pool(x, 3, 2, padding=1)
        for stage in self.stages:
            for block in stage:
                x = block(x)
        return x

    def embed(self, images: TensorLike) -> Tensor:
        """Return one vector for each image, the mean over all places: (batch, channels)."""
        return ops.mean(self.features(images), (1, 2))


class ResNetClassifier(ResNet):
    """A ResNet with logits for each image, (batch, labels)."""

    has_head = True
    classifier: Linear

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.classifier = Linear(self.width, count_labels(settings))

    def forward(self, images: TensorLike) -> Tensor:
        return self.classifier(self.embed(images))
