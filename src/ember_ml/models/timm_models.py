"""ResNet and ConvNeXt in the folders of timm: its names of models, settings and tensors, as data.

``config.json`` has an ``architecture`` such as "resnet50" in place of a ``model_type``; the sizes go with that name.
``num_classes`` is 0 for a model without a head, and ``model_args`` may change some of the sizes; newer versions of timm
repeat ``num_classes`` and ``global_pool`` there.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from ember_ml.errors import ConfigError
from ember_ml.models.convnext import ConvNext, ConvNextClassifier
from ember_ml.models.names import Names, Stored
from ember_ml.models.pretrained import PretrainedModel
from ember_ml.models.resnet import ResNet, ResNetClassifier
from ember_ml.models.settings import Settings
from ember_ml.nn.layers.channel_mixing import Conv2d

__all__ = ["find_timm_class"]

_STAGES, _MOST_LAYERS, _MOST_CHANNELS = 4, 1000, 1_000_000


class _ResNetSizes(NamedTuple):
    layer_type: str
    layers: list[int]


class _ConvNextSizes(NamedTuple):
    version: int
    depths: list[int]
    dims: list[int]
    has_convolutions: bool = False
    """Whether the linear maps are stored as convolutions of 1x1."""


_RESNETS = {
    "resnet18": _ResNetSizes("basic", [2, 2, 2, 2]),
    "resnet26": _ResNetSizes("bottleneck", [2, 2, 2, 2]),
    "resnet34": _ResNetSizes("basic", [3, 4, 6, 3]),
    "resnet50": _ResNetSizes("bottleneck", [3, 4, 6, 3]),
    "resnet101": _ResNetSizes("bottleneck", [3, 4, 23, 3]),
    "resnet152": _ResNetSizes("bottleneck", [3, 8, 36, 3]),
    "resnet200": _ResNetSizes("bottleneck", [3, 24, 36, 3]),
}
_SMALL: dict[str, tuple[list[int], list[int], bool]] = {
    "atto": ([2, 2, 6, 2], [40, 80, 160, 320], True),
    "femto": ([2, 2, 6, 2], [48, 96, 192, 384], True),
    "pico": ([2, 2, 6, 2], [64, 128, 256, 512], True),
    "nano": ([2, 2, 8, 2], [80, 160, 320, 640], True),
    "tiny": ([3, 3, 9, 3], [96, 192, 384, 768], False),
    "small": ([3, 3, 27, 3], [96, 192, 384, 768], False),
    "base": ([3, 3, 27, 3], [128, 256, 512, 1024], False),
    "large": ([3, 3, 27, 3], [192, 384, 768, 1536], False),
}
_CONVNEXTS = {
    **{f"convnext_{size}": _ConvNextSizes(1, *found) for size, found in _SMALL.items()},
    **{f"convnextv2_{size}": _ConvNextSizes(2, *found) for size, found in _SMALL.items()},
    "convnext_xlarge": _ConvNextSizes(1, [3, 3, 27, 3], [256, 512, 1024, 2048]),
    "convnextv2_huge": _ConvNextSizes(2, [3, 3, 27, 3], [352, 704, 1408, 2816]),
}


class _CountedFromOne(Names):
    """Names in which stages, convolutions and norms have numbers from 1 on; the table has them from 0 on."""

    def find(self, name: str, count: int = 0) -> Stored:
        stored = super().find(name, count)
        return stored._replace(names=tuple(_NUMBER.sub(_add_one, x) for x in stored.names))


_NUMBER = re.compile(r"\b(layer|conv|bn)(\d+)")


def _add_one(found: re.Match[str]) -> str:
    return f"{found[1]}{int(found[2]) + 1}"


_RESNET_NAMES = _CountedFromOne(
    {
        "stem.map": "conv0",
        "stem.norm": "bn0",
        "stages.{}.{}.parts.{}.map": "layer{}.{}.conv{}",
        "stages.{}.{}.parts.{}.norm": "layer{}.{}.bn{}",
        "stages.{}.{}.shortcut.map": "layer{}.{}.downsample.0",
        "stages.{}.{}.shortcut.norm": "layer{}.{}.downsample.1",
        "classifier": "fc",
    }
)
_CONVNEXT_NAMES = Names(
    {
        "patches": "stem.0",
        "patches_norm": "stem.1",
        "stages.{}.down_norm": "stages.{}.downsample.0",
        "stages.{}.down": "stages.{}.downsample.1",
        "stages.{}.blocks.{}.near": "stages.{}.blocks.{}.conv_dw",
        "stages.{}.blocks.{}.norm": "stages.{}.blocks.{}.norm",
        "stages.{}.blocks.{}.inner": "stages.{}.blocks.{}.mlp.fc1",
        "stages.{}.blocks.{}.response": "stages.{}.blocks.{}.mlp.grn",
        "stages.{}.blocks.{}.outer": "stages.{}.blocks.{}.mlp.fc2",
        "stages.{}.blocks.{}.scale": "stages.{}.blocks.{}.gamma",
        "norm": "head.norm",
        "classifier": "head.fc",
    }
)


def find_timm_class(settings: Settings) -> type[PretrainedModel]:
    """Return the class of the model that timm's settings name; raise where there is none."""
    name = settings.get("architecture")
    if not isinstance(name, str) or (name not in _RESNETS and name not in _CONVNEXTS):
        raise ConfigError(
            f"{settings.where} has architecture = {name!r:.80}; of timm's Ember ML has {', '.join(_RESNETS)}, "
            f"{', '.join(_CONVNEXTS)}"
        )
    for part in (settings, settings.section("model_args")):
        if part.get("global_pool", "avg") != "avg":
            raise ConfigError(
                f"{part.where} has global_pool = {part.get('global_pool')!r:.80}; Ember ML has avg, the mean of all "
                "places"
            )
    has_head = _count_classes(settings) > 0
    if name in _RESNETS:
        return _TimmResNetClassifier if has_head else _TimmResNet
    return _TimmConvNextClassifier if has_head else _TimmConvNext


def _count_classes(settings: Settings) -> int:
    """Return the number of classes; raise where it is said twice, and differently."""
    arguments = settings.section("model_args")
    said = [part.integer("num_classes", 1000, least=0, most=_MOST_CHANNELS) for part in (settings, arguments)]
    if settings.get("num_classes") is None or arguments.get("num_classes") is None:
        return said[0] if arguments.get("num_classes") is None else said[1]
    if said[0] != said[1]:
        raise ConfigError(f"{settings.where} has num_classes = {said[0]}, and {said[1]} in its model_args")
    return said[0]


def _read_arguments(settings: Settings, *known: str) -> Settings:
    """Return the arguments with which timm makes the model; raise where one would change it in another way."""
    arguments = settings.section("model_args")
    unknown = set(arguments.values) - {"in_chans", "num_classes", "global_pool", *known}
    if unknown:
        raise ConfigError(f"{arguments.where} has {min(unknown)!r:.80}, which Ember ML does not have for such a model")
    return arguments


def _translate(settings: Settings, values: dict[str, Any], arguments: Settings) -> Settings:
    more = {
        "num_channels": arguments.integer("in_chans", 3, most=_MOST_CHANNELS),
        "num_labels": _count_classes(settings) or None,
    }
    return Settings({**values, **more}, settings.where)


class _FromTimm(PretrainedModel):
    """What models in timm's format share."""

    def _describe(self) -> str:
        return f"{self.settings.get('architecture')} of {self.settings.where}"

    def _config(self) -> dict[str, Any]:
        return dict(self.settings.values)


class _TimmResNet(_FromTimm, ResNet):
    """A ResNet with the names of timm."""

    def __init__(self, settings: Settings) -> None:
        sizes, arguments = _RESNETS[settings.get("architecture")], _read_arguments(settings, "layers", "channels")
        widths = arguments.integers("channels", [64, 128, 256, 512], _STAGES, _MOST_CHANNELS // 4)
        values = {
            "model_type": "resnet",
            "layer_type": sizes.layer_type,
            "hidden_sizes": [width * (4 if sizes.layer_type == "bottleneck" else 1) for width in widths],
            "depths": arguments.integers("layers", sizes.layers, _STAGES, _MOST_LAYERS),
        }
        super().__init__(_translate(settings, values, arguments))
        self.settings, self.names = settings, _RESNET_NAMES


class _TimmResNetClassifier(_TimmResNet, ResNetClassifier):
    """The same with its head."""


class _TimmConvNext(_FromTimm, ConvNext):
    """A ConvNeXt with the names of timm."""

    def __init__(self, settings: Settings) -> None:
        sizes, arguments = (
            _CONVNEXTS[settings.get("architecture")],
            _read_arguments(settings, "depths", "dims", "drop_path_rate"),
        )
        widths = arguments.integers("dims", sizes.dims, _STAGES, _MOST_CHANNELS)
        values = {
            "model_type": "convnext" if sizes.version == 1 else "convnextv2",
            "hidden_sizes": widths,
            "depths": arguments.integers("depths", sizes.depths, _STAGES, _MOST_LAYERS),
            "drop_path_rate": arguments.number("drop_path_rate", 0.0),
            "layer_norm_eps": 1e-6,
        }
        super().__init__(_translate(settings, values, arguments))
        self.settings, self.names = settings, _CONVNEXT_NAMES
        for stage, width in zip(self.stages, widths, strict=True):
            for block in stage.blocks:
                if sizes.has_convolutions:
                    block.inner, block.outer = Conv2d(width, 4 * width, 1), Conv2d(4 * width, width, 1)
                if sizes.version == 2:
                    block.response.add_parameter("weight", (4 * width,), "zeros")
                    block.response.add_parameter("bias", (4 * width,), "zeros")


class _TimmConvNextClassifier(_TimmConvNext, ConvNextClassifier):
    """The same with its head."""
