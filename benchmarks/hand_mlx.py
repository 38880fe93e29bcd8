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


class Block(nn.Module):
    """A pre-norm transformer block."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def __call__(self, x: mx.array) -> mx.array:
        b, t, c = x.shape
        q, k, v = self.qkv(self.norm1(x)).reshape(b, t, 3, self.heads, c // self.heads).transpose(2, 0, 3, 1, 4)
        y = mx.fast.scaled_dot_product_attention(q, k, v, scale=(c // self.heads) ** -0.5, mask="causal")
        x = x + self.out(y.transpose(0, 2, 1, 3).reshape(b, t, c))
        return x + self.down(nn.gelu_approx(self.up(self.norm2(x))))


class Transformer(nn.Module):
    """A decoder-only language model."""

    def __init__(self, vocabulary: int, length: int, width: int, depth: int, heads: int) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.places = mx.zeros((length, width))
        self.blocks = [Block(width, heads) for _ in range(depth)]
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


def model_of(name: str, state: dict[str, np.ndarray]) -> Any:
    """Return the model with these parameters."""
    if name == "transformer":
        model: Any = Transformer(hand_numpy.VOCABULARY, hand_numpy.LENGTH, 128, 2, 4)
        pairs = [(key, mx.array(state[value])) for key, value in hand_numpy.transformer_names(state).items()]
        return model.load_weights(pairs)
    shapes = [state[f"{place}.weight"].shape[::-1] for place in (0, 2, 4)]
    kinds = ("weight", "bias")
    pairs = [(f"layers.{i}.{kind}", mx.array(state[f"{2 * i}.{kind}"])) for i in range(3) for kind in kinds]
    return Perceptron(shapes).load_weights(pairs)


def step(
    name: str, parameters: dict[str, np.ndarray], x: np.ndarray, y: np.ndarray, rate: float, compiled: bool
) -> Callable[[], Any]:
    """Return one step: forward, backward, Adam."""
    model = model_of(name, parameters)
    optimizer = optim.Adam(rate, bias_correction=True)
    inputs, target = mx.array(x), mx.array(y)
    mx.eval(model.parameters())

    def loss_of(inputs: mx.array, target: mx.array) -> mx.array:
        return nn.losses.cross_entropy(model(inputs), target, reduction="mean")

    gradients_of = nn.value_and_grad(model, loss_of)

    def update(inputs: mx.array, target: mx.array) -> mx.array:
        loss, gradients = gradients_of(inputs, target)
        optimizer.update(model, gradients)
        return loss

    state = [model.state, optimizer.state]
    optimizer.init(model.trainable_parameters())
    run_update = partial(mx.compile, inputs=state, outputs=state)(update) if compiled else update

    def run() -> mx.array:
        loss = run_update(inputs, target)
        mx.eval(loss, state)
        return loss

    return run
