"""The models of ``training.py`` as they are written with this library, and a batch of data for each."""

from __future__ import annotations

from typing import Any, NamedTuple

import hand_numpy
import numpy as np

from ember_ml import nn, ops
from ember_ml.nn import blocks

__all__ = ["MODELS", "Kind", "data_of", "model_of"]


class Kind(NamedTuple):
    """A model that is measured."""

    batch: int
    backends: tuple[str, ...]
    """Where there is a step written by hand."""
    dropout: float = 0.0


ALL = ("numpy", "torch", "mlx", "jax")
MODELS: dict[str, Kind] = {
    "mlp": Kind(128, ALL),
    "transformer": Kind(32, ALL),
    "tiny": Kind(4, ALL),
    "gpt": Kind(16, ("numpy", "torch", "mlx"), dropout=0.1),
    "vit": Kind(16, ("numpy", "torch", "mlx")),
    "lstm": Kind(32, ("numpy", "torch", "mlx")),
    "resnet": Kind(16, ("numpy", "torch", "mlx")),
    "resnet_last": Kind(16, ("numpy", "torch")),
}
SIZES = {"mlp": (784, 256, 256, 10), "tiny": (10, 16, 16, 10)}
WIDTH, DEPTH, HEADS, CLASSES = 128, 4, 4, 10
LENGTH, VOCABULARY = hand_numpy.LENGTH, hand_numpy.VOCABULARY
PIXELS, PATCH, CHANNELS = 64, 8, (32, 64, 128, 256)
STEPS, FEATURES = 32, 64


def data_of(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return a batch of inputs and classes; images have their channels first."""
    rng, batch = np.random.default_rng(0), MODELS[name].batch
    if name in ("transformer", "gpt"):
        tokens = rng.integers(0, VOCABULARY, (batch, LENGTH + 1))
        return tokens[:, :-1], tokens[:, 1:]
    shape: tuple[int, ...] = (batch, 3, PIXELS, PIXELS)
    if name in SIZES:
        shape = (batch, SIZES[name][0])
    elif name == "lstm":
        shape = (batch, STEPS, FEATURES)
    return rng.normal(size=shape).astype(np.float32), rng.integers(0, CLASSES, batch)


class BasicBlock(nn.Module):
    """Two convolutions, and what they get added to their result."""

    def __init__(self, inputs: int, outputs: int, stride: int, data_format: Any) -> None:
        def conv(n: int, size: int, stride: int) -> nn.Conv2d:
            padding = size // 2
            return nn.Conv2d(n, outputs, size, stride, padding, bias=False, data_format=data_format)

        def norm() -> nn.BatchNorm:
            return nn.BatchNorm(outputs, data_format=data_format)

        self.conv1, self.bn1 = conv(inputs, 3, stride), norm()
        self.conv2, self.bn2 = conv(outputs, 3, 1), norm()
        is_same = inputs == outputs and stride == 1
        self.downsample = None if is_same else nn.Sequential(conv(inputs, 1, stride), norm())

    def forward(self, x: Any) -> Any:
        y = self.bn2(self.conv2(ops.relu(self.bn1(self.conv1(x)))))
        return ops.relu(ops.add(y, x if self.downsample is None else self.downsample(x)))


class ResNet(nn.Module):
    """ResNet-18 with half as many channels; the parameters have the names of torchvision's."""

    def __init__(self, data_format: Any) -> None:
        self.data_format = data_format
        first = CHANNELS[0]
        self.conv1 = nn.Conv2d(3, first, 7, 2, 3, bias=False, data_format=data_format)
        self.bn1 = nn.BatchNorm(first, data_format=data_format)
        self.pool = nn.MaxPool2d(3, 2, 1, data_format)
        pairs = zip((first, *CHANNELS), CHANNELS, strict=False)
        self.stages = [
            nn.Sequential(BasicBlock(n, m, 1 if n == m else 2, data_format), BasicBlock(m, m, 1, data_format))
            for n, m in pairs
        ]
        self.fc = nn.Linear(CHANNELS[-1], CLASSES)

    def forward(self, x: Any) -> Any:
        x = self.pool(ops.relu(self.bn1(self.conv1(x))))
        for stage in self.stages:
            x = stage(x)
        return self.fc(ops.mean(x, (2, 3) if self.data_format == "channels_first" else (1, 2)))


class VisionTransformer(nn.Module):
    """Patches of an image as a sequence, and the mean of what a transformer makes of them."""

    def __init__(self, data_format: Any) -> None:
        self.is_first = data_format == "channels_first"
        self.patches = nn.Conv2d(3, WIDTH, PATCH, PATCH, data_format=data_format)
        self.places = nn.Parameter(ops.random_normal(((PIXELS // PATCH) ** 2, WIDTH), 0.0, 0.02))
        self.encoder = blocks.Transformer(WIDTH, DEPTH, HEADS, activation=nn.GELU(approximate=False))
        self.head = nn.Linear(WIDTH, CLASSES)

    def forward(self, x: Any) -> Any:
        x = self.patches(x)
        if self.is_first:
            x = ops.swapaxes(ops.reshape(x, (*x.shape[:2], -1)), 1, 2)
        else:
            x = ops.reshape(x, (x.shape[0], -1, WIDTH))
        return self.head(ops.mean(self.encoder(ops.add(x, self.places)), 1))


class Classifier(nn.Module):
    """Two recurrent layers, and the class that the last position tells."""

    def __init__(self) -> None:
        self.lstm, self.head = nn.LSTM(FEATURES, WIDTH, layers=2), nn.Linear(WIDTH, CLASSES)

    def forward(self, x: Any) -> Any:
        return self.head(ops.get_item(self.lstm(x), (slice(None), -1)))


def model_of(name: str, backend: str, dropout: float) -> nn.Module:
    """Return the model, written once."""
    ops.random.seed(0)
    # MLX knows only channels that come last
    data_format = "channels_last" if backend == "mlx" or name.endswith("_last") else "channels_first"
    if name == "transformer":
        return blocks.LanguageModel(VOCABULARY, WIDTH, hand_numpy.DEPTH, HEADS, length=LENGTH, tied=False)
    if name == "gpt":
        return blocks.LanguageModel(
            VOCABULARY,
            WIDTH,
            DEPTH,
            HEADS,
            length=LENGTH,
            activation=nn.GELU(approximate=False),
            dropout=dropout,
            tied=False,
            attention_dropout=0.0 if backend == "mlx" else dropout,  # which attention by hand on MLX has not
        )
    if name == "vit":
        return VisionTransformer(data_format)
    if name == "lstm":
        return Classifier()
    if name.startswith("resnet"):
        return ResNet(data_format)
    first, second, third, last = SIZES[name]
    return nn.Sequential(nn.Linear(first, second), ops.relu, nn.Linear(second, third), ops.relu, nn.Linear(third, last))
