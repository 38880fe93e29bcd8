"""ConvNeXt (Liu et al., 2022) and ConvNeXt V2 (Woo et al., 2023): convolutions in the form of a transformer.

Patches of 4x4 become vectors. Each stage but the first begins with a norm and a 2x2 convolution with stride 2. A block
is ``x + scale * W2 gelu(W1 norm(f(x)))``, where ``f`` is a 7x7 convolution of each channel alone. Version 2 has no
scale; it multiplies each inner channel by its length over all places beside the mean of the channels' lengths.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from ember_ml import ops
from ember_ml.models.activations import ACTIVATIONS
from ember_ml.models.image_encoder import check_images, drop_samples, read_sides
from ember_ml.models.names import Names
from ember_ml.models.pretrained import PretrainedModel
from ember_ml.models.settings import Settings, count_labels
from ember_ml.nn.initializers import constant
from ember_ml.nn.layers.base import Layer
from ember_ml.nn.layers.channel_mixing import Conv2d, LayerNorm, Linear
from ember_ml.nn.modules.module import Module
from ember_ml.typing import Tensor, TensorLike

__all__ = ["ConvNext", "ConvNextClassifier"]

_EPSILON = 1e-6
"""That of all norms but the last."""
_STAGE = "encoder.stages.{}"
_BLOCK = f"{_STAGE}.layers.{{}}"
_TABLE = {
    "patches": "embeddings.patch_embeddings",
    "patches_norm": "embeddings.layernorm",
    "stages.{}.down_norm": f"{_STAGE}.downsampling_layer.0",
    "stages.{}.down": f"{_STAGE}.downsampling_layer.1",
    "stages.{}.blocks.{}.near": f"{_BLOCK}.dwconv",
    "stages.{}.blocks.{}.norm": f"{_BLOCK}.layernorm",
    "stages.{}.blocks.{}.inner": f"{_BLOCK}.pwconv1",
    "stages.{}.blocks.{}.response": f"{_BLOCK}.grn",
    "stages.{}.blocks.{}.outer": f"{_BLOCK}.pwconv2",
    "stages.{}.blocks.{}.scale": f"{_BLOCK}.layer_scale_parameter",
    "norm": "layernorm",
}
_VERSIONS = {"convnext": 1, "convnextv2": 2}


class _Response(Layer):
    """``x + weight * x * n + bias``, where ``n`` is a channel's length over all places beside the channels' mean."""

    weight: Any
    bias: Any

    def __init__(self, width: int) -> None:
        self.add_parameter("weight", (1, 1, 1, width), "zeros")
        self.add_parameter("bias", (1, 1, 1, width), "zeros")

    def forward(self, x: Tensor) -> Tensor:
        lengths = ops.sqrt(ops.sum(ops.square(x), (1, 2), keepdims=True))
        shares = ops.divide(lengths, ops.add(ops.mean(lengths, -1, keepdims=True), _EPSILON))
        return ops.add(x, ops.add(ops.multiply(self.weight, ops.multiply(x, shares)), self.bias))


class _Block(Layer):
    scale: Any

    def __init__(self, settings: Settings, width: int, dropped: float) -> None:
        self.near = Conv2d(width, width, 7, padding=3, groups=width)
        self.norm = LayerNorm(width, _EPSILON)
        self.inner, self.outer = Linear(width, 4 * width), Linear(4 * width, width)
        self._activation = settings.choice("hidden_act", ACTIVATIONS, "gelu")
        self._has_response = settings.choice("model_type", _VERSIONS) == 2
        start = 0.0 if self._has_response else settings.number("layer_scale_init_value", 1e-6)
        self._has_scale, self._dropped = start > 0, dropped
        if self._has_response:
            self.response = _Response(4 * width)
        if self._has_scale:
            self.add_parameter("scale", (width,), constant(start))

    def forward(self, x: Tensor) -> Tensor:
        found = self._activation(self.inner(self.norm(self.near(x))))
        found = self.outer(self.response(found) if self._has_response else found)
        found = ops.multiply(found, self.scale) if self._has_scale else found
        return ops.add(x, drop_samples(found, self._dropped if self.training else 0.0))


class _Stage(Module):
    down_norm: LayerNorm
    down: Conv2d

    def __init__(self, settings: Settings, inputs: int | None, width: int, dropped: list[float]) -> None:
        self._has_down = inputs is not None
        if inputs is not None:
            self.down_norm, self.down = LayerNorm(inputs, _EPSILON), Conv2d(inputs, width, 2, 2)
        self.blocks = [_Block(settings, width, share) for share in dropped]

    def forward(self, x: Tensor) -> Tensor:
        x = self.down(self.down_norm(x)) if self._has_down else x
        for block in self.blocks:
            x = block(x)
        return x


class ConvNext(PretrainedModel):
    """A ConvNeXt without a head: (batch, height, width, channels) features of images."""

    has_head: bool = False
    names: Names
    patches: Conv2d
    patches_norm: LayerNorm
    stages: list[Any]
    norm: LayerNorm

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        settings.choice("model_type", _VERSIONS)
        prefix = f"{settings.get('model_type')}."
        table = {**{key: prefix + name for key, name in _TABLE.items()}, "classifier": "classifier"}
        names = Names(table, prefix, ignored=() if self.has_head else (r"^classifier\.",))
        self.names = names if self.has_head else names.without_prefix()
        widths = settings.integers("hidden_sizes", [96, 192, 384, 768])
        depths = settings.integers("depths", [3, 3, 9, 3], len(widths), most=1000)
        self.channels: int = settings.integer("num_channels", 3)
        patch = read_sides(settings, "patch_size", 4)
        self.patches = Conv2d(self.channels, widths[0], patch, patch)
        self.patches_norm = LayerNorm(widths[0], _EPSILON)
        most, count = settings.number("drop_path_rate", 0.0), sum(depths)
        shares = iter([most * i / max(count - 1, 1) for i in range(count)])  # deeper blocks are dropped more often
        self.stages = [
            _Stage(settings, inputs, width, [next(shares) for _ in range(depth)])
            for (inputs, width), depth in zip(pairwise([None, *widths]), depths, strict=True)
            if width is not None
        ]
        self.norm = LayerNorm(widths[-1], settings.number("layer_norm_eps", 1e-12))

    def forward(self, images: TensorLike) -> Tensor:
        return self.features(images)

    def features(self, images: TensorLike) -> Tensor:
        """What the last stage makes of (batch, height, width, channels) images."""
        x = self.patches_norm(self.patches(check_images(images, self.channels, self.patches.weight.dtype)))
        for stage in self.stages:
            x = stage(x)
        return x

    def embed(self, images: TensorLike) -> Tensor:
        """Return one vector for each image, the normalized mean over all places: (batch, channels)."""
        return self.norm(ops.mean(self.features(images), (1, 2)))


class ConvNextClassifier(ConvNext):
    """A ConvNeXt with logits for each image, (batch, labels)."""

    has_head = True
    classifier: Linear

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.classifier = Linear(self.norm.shape[0], count_labels(settings))

    def forward(self, images: TensorLike) -> Tensor:
        return self.classifier(self.embed(images))
