"""Steps of training as they are written by hand on MLX."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import hand_numpy
import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim
import numpy as np
import training_models


class Block(nn.Module):
    """A pre-norm transformer block."""

    def __init__(self, width: int, heads: int, exact: bool = False, dropout: float = 0.0, causal: bool = True) -> None:
        super().__init__()
        self.heads, self.mask, self.drop = heads, "causal" if causal else None, nn.Dropout(dropout)
        self.gelu = nn.gelu if exact else nn.gelu_approx
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def __call__(self, x: mx.array) -> mx.array:
        b, t, c = x.shape
        q, k, v = self.qkv(self.norm1(x)).reshape(b, t, 3, self.heads, c // self.heads).transpose(2, 0, 3, 1, 4)
        y = mx.fast.scaled_dot_product_attention(q, k, v, scale=(c // self.heads) ** -0.5, mask=self.mask)
        x = x + self.drop(self.out(y.transpose(0, 2, 1, 3).reshape(b, t, c)))
        return x + self.drop(self.down(self.gelu(self.up(self.norm2(x)))))


class Transformer(nn.Module):
    """A decoder-only language model."""

    def __init__(
        self,
        vocabulary: int,
        length: int,
        width: int,
        depth: int,
        heads: int,
        exact: bool = False,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.places = mx.zeros((length, width))
        self.blocks = [Block(width, heads, exact, dropout) for _ in range(depth)]
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)

    def __call__(self, x: mx.array) -> mx.array:
        x = self.tokens(x) + self.places[: x.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


class Perceptron(nn.Module):
    """A multilayer perceptron."""

    def __init__(self, shapes: list[tuple[int, int]]) -> None:
        super().__init__()
        self.layers = [nn.Linear(n, m) for n, m in shapes]

    def __call__(self, x: mx.array) -> mx.array:
        for layer in self.layers[:-1]:
            x = nn.relu(layer(x))
        return self.layers[-1](x)


class VisionTransformer(nn.Module):
    """Patches of an image as a sequence, and the mean of what a transformer makes of them."""

    def __init__(self, places: int, width: int, depth: int, heads: int, patch: int, classes: int) -> None:
        super().__init__()
        self.places = mx.zeros((places, width))
        self.patches = nn.Conv2d(3, width, patch, patch)
        self.blocks = [Block(width, heads, exact=True, causal=False) for _ in range(depth)]
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, classes)

    def __call__(self, x: mx.array) -> mx.array:
        x = self.patches(x)
        x = x.reshape(x.shape[0], -1, x.shape[-1]) + self.places
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x).mean(1))


class BasicBlock(nn.Module):
    """A block of ResNet-18."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm(outputs)
        self.conv2, self.bn2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False), nn.BatchNorm(outputs)
        is_same = inputs == outputs
        conv = None if is_same else nn.Conv2d(inputs, outputs, 1, stride, bias=False)
        self.downsample = None if conv is None else [conv, nn.BatchNorm(outputs)]

    def __call__(self, x: mx.array) -> mx.array:
        y = self.bn2(self.conv2(nn.relu(self.bn1(self.conv1(x)))))
        if self.downsample is not None:
            conv, norm = self.downsample
            x = norm(conv(x))
        return nn.relu(y + x)


class ResNet(nn.Module):
    """ResNet-18."""

    def __init__(self, channels: tuple[int, ...], classes: int) -> None:
        super().__init__()
        first = channels[0]
        self.conv1, self.bn1 = nn.Conv2d(3, first, 7, 2, 3, bias=False), nn.BatchNorm(first)
        self.pool = nn.MaxPool2d(3, 2, 1)
        pairs = zip((first, *channels), channels, strict=False)
        self.stages = [[BasicBlock(n, m, 1 if n == m else 2), BasicBlock(m, m, 1)] for n, m in pairs]
        self.fc = nn.Linear(channels[-1], classes)

    def __call__(self, x: mx.array) -> mx.array:
        x = self.pool(nn.relu(self.bn1(self.conv1(x))))
        for stage in self.stages:
            for block in stage:
                x = block(x)
        return self.fc(x.mean((1, 2)))


class Recurrent(nn.Module):
    """The layer of ``mlx.nn.LSTM``, with the two biases of PyTorch's."""

    def __init__(self, inputs: int, width: int) -> None:
        super().__init__()
        self.weight_ih, self.weight_hh = mx.zeros((4 * width, inputs)), mx.zeros((4 * width, width))
        self.bias_ih, self.bias_hh = mx.zeros(4 * width), mx.zeros(4 * width)

    def __call__(self, x: mx.array) -> mx.array:
        x = mx.addmm(self.bias_ih + self.bias_hh, x, self.weight_ih.T)
        states, hidden, cell = [], None, None
        for place in range(x.shape[1]):
            gates = x[:, place]
            if hidden is not None:
                gates = mx.addmm(gates, hidden, self.weight_hh.T)
            i, f, g, o = mx.split(gates, 4, axis=-1)
            new = mx.sigmoid(i) * mx.tanh(g)
            cell = new if cell is None else mx.sigmoid(f) * cell + new
            hidden = mx.sigmoid(o) * mx.tanh(cell)
            states.append(hidden)
        return mx.stack(states, axis=1)


class Classifier(nn.Module):
    """Two recurrent layers, and the class that the last position tells."""

    def __init__(self, features: int, width: int, classes: int) -> None:
        super().__init__()
        self.lstm = [Recurrent(features, width), Recurrent(width, width)]
        self.head = nn.Linear(width, classes)

    def __call__(self, x: mx.array) -> mx.array:
        for layer in self.lstm:
            x = layer(x)
        return self.head(x[:, -1])


def model_of(name: str, state: dict[str, np.ndarray], dropout: float) -> Any:
    """Return the model with these parameters."""
    sizes, model = training_models, None
    names = {key: key for key in state}
    if name == "transformer":
        model = Transformer(sizes.VOCABULARY, sizes.LENGTH, sizes.WIDTH, hand_numpy.DEPTH, sizes.HEADS)
        names = hand_numpy.transformer_names(state)
    elif name == "gpt":
        shape = (sizes.VOCABULARY, sizes.LENGTH, sizes.WIDTH, sizes.DEPTH, sizes.HEADS)
        model, names = Transformer(*shape, exact=True, dropout=dropout), hand_numpy.transformer_names(state)
    elif name == "vit":
        places = (sizes.PIXELS // sizes.PATCH) ** 2
        model = VisionTransformer(places, sizes.WIDTH, sizes.DEPTH, sizes.HEADS, sizes.PATCH, sizes.CLASSES)
        parts = {"attention_norm": "norm1", "attention.qkv": "qkv", "attention.output": "out"}
        parts |= {"mlp_norm": "norm2", "mlp.up": "up", "mlp.down": "down", "encoder.": ""}
        for ours in state:
            theirs = ours
            for part, other in parts.items():
                theirs = theirs.replace(part, other)
            names[theirs] = names.pop(ours)
    elif name == "lstm":
        model = Classifier(sizes.FEATURES, sizes.WIDTH, sizes.CLASSES)
        kinds = [key.removesuffix("_l0") for key in state if key.endswith("_l0")]
        own = {f"lstm.{place}.{kind.removeprefix('lstm.')}": f"{kind}_l{place}" for kind in kinds for place in (0, 1)}
        names = own | {key: key for key in state if key.startswith("head.")}
    elif name == "resnet":
        model = ResNet(sizes.CHANNELS, sizes.CLASSES)
    if model is not None:
        # MLX has the channels of kernels last
        values = {key: np.moveaxis(x, 1, -1) if x.ndim == 4 else x for key, x in state.items()}
        return model.load_weights([(theirs, mx.array(values[ours])) for theirs, ours in names.items()])
    shapes = [state[f"{place}.weight"].shape[::-1] for place in (0, 2, 4)]
    kinds = ("weight", "bias")
    pairs = [(f"layers.{i}.{kind}", mx.array(state[f"{2 * i}.{kind}"])) for i in range(3) for kind in kinds]
    return Perceptron(shapes).load_weights(pairs)


def step(
    name: str,
    parameters: dict[str, np.ndarray],
    x: np.ndarray,
    y: np.ndarray,
    rate: float,
    compiled: bool,
    dropout: float = 0.0,
) -> Callable[[], Any]:
    """Return one step: forward, backward, Adam."""
    model = model_of(name, parameters, dropout)
    optimizer = optim.Adam(rate, bias_correction=True)
    inputs, target = mx.array(x if x.ndim < 4 else np.moveaxis(x, 1, -1)), mx.array(y)
    mx.eval(model.parameters())

    def loss_of(inputs: mx.array, target: mx.array) -> mx.array:
        return nn.losses.cross_entropy(model(inputs), target, reduction="mean")

    gradients_of = nn.value_and_grad(model, loss_of)

    def update(inputs: mx.array, target: mx.array) -> mx.array:
        loss, gradients = gradients_of(inputs, target)
        optimizer.update(model, gradients)
        return loss

    state = [model.state, optimizer.state, mx.random.state]
    optimizer.init(model.trainable_parameters())
    run_update = partial(mx.compile, inputs=state, outputs=state)(update) if compiled else update

    def run() -> mx.array:
        loss = run_update(inputs, target)
        mx.eval(loss, state)
        return loss

    return run
