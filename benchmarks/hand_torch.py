"""Steps of training as they are written by hand on PyTorch, and on Keras over it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import hand_numpy
import numpy as np
import torch
from torch.nn import functional as F


class Block(torch.nn.Module):
    """A pre-norm transformer block."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)
        self.qkv, self.out = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)
        self.up, self.down = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, t, c = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, c))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class Transformer(torch.nn.Module):
    """A decoder-only language model."""

    def __init__(self, vocabulary: int, length: int, width: int, depth: int, heads: int) -> None:
        super().__init__()
        self.tokens = torch.nn.Embedding(vocabulary, width)
        self.places = torch.nn.Parameter(torch.zeros(length, width))
        self.blocks = torch.nn.Sequential(*(Block(width, heads) for _ in range(depth)))
        self.norm, self.head = torch.nn.LayerNorm(width), torch.nn.Linear(width, vocabulary, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.norm(self.blocks(self.tokens(x) + self.places[: x.shape[1]])))


def model_of(name: str, state: dict[str, np.ndarray]) -> torch.nn.Module:
    """Return the model with these parameters."""
    if name == "transformer":
        model = Transformer(hand_numpy.VOCABULARY, hand_numpy.LENGTH, 128, 2, 4)
        names = hand_numpy.transformer_names(state)
        model.load_state_dict({key: torch.tensor(state[names[key]]) for key in model.state_dict()})
        return model
    layers: list[torch.nn.Module] = []
    for place in (0, 2, 4):
        weight = state[f"{place}.weight"]
        layers += [torch.nn.Linear(weight.shape[1], weight.shape[0]), torch.nn.ReLU()]
    model = torch.nn.Sequential(*layers[:-1])
    model.load_state_dict({key: torch.tensor(value) for key, value in state.items()})
    return model


def step(
    name: str, state: dict[str, np.ndarray], x: np.ndarray, y: np.ndarray, rate: float, compiled: bool
) -> Callable[[], Any]:
    """Return one step: forward, backward, fused Adam."""
    model = model_of(name, state)
    optimizer = torch.optim.Adam(model.parameters(), lr=rate, fused=True)
    inputs, target = torch.tensor(x), torch.tensor(y)

    def loss_of(inputs: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(model(inputs).flatten(0, -2), target.flatten())

    return _step_of(loss_of, optimizer, (inputs, target), compiled)


def _step_of(
    loss_of: Callable[..., torch.Tensor], optimizer: torch.optim.Optimizer, batch: Any, compiled: bool
) -> Callable[[], torch.Tensor]:
    """Return a function that takes one step of the optimizer and returns the loss."""
    run_loss = torch.compile(loss_of) if compiled else loss_of

    def run() -> torch.Tensor:
        loss = run_loss(*batch)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return run


def language_step(
    state: dict[str, torch.Tensor],
    heads: int,
    tokens: torch.Tensor,
    target: torch.Tensor,
    rate: float,
    decay: float,
    compiled: bool,
) -> Callable[[], torch.Tensor]:
    """Return one step of a language model: forward, backward, fused AdamW."""
    names = hand_numpy.transformer_names(state)
    length, width = state["places.weight"].shape
    depth = sum(name.endswith("qkv.weight") for name in state)
    model: Any = Transformer(state["embedding.weight"].shape[0], length, width, depth, heads)
    model = model.to(tokens.device, state["places.weight"].dtype)
    model.load_state_dict({key: state[names[key]] for key in model.state_dict()})
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=decay, fused=True)

    def loss_of(tokens: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(model(tokens).flatten(0, 1).float(), target.flatten())

    return _step_of(loss_of, optimizer, (tokens, target), compiled)


def keras_step(name: str, x: np.ndarray, y: np.ndarray, rate: float, compiled: bool) -> Callable[[], Any]:
    """Return one step of the same model in Keras on PyTorch."""
    import os

    os.environ["KERAS_BACKEND"] = "torch"
    import keras

    if name == "transformer":
        model = _keras_transformer(128)
    else:
        sizes = {"mlp": (784, 256, 256, 10), "tiny": (10, 16, 16, 10)}[name]
        activations = ("relu", "relu", None)
        layers = [keras.layers.Dense(n, activation=a) for n, a in zip(sizes[1:], activations, strict=True)]
        model = keras.Sequential([keras.Input(sizes[:1]), *layers])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    settings: Any = {"jit_compile": "auto" if compiled else False}
    model.compile(optimizer=keras.optimizers.Adam(rate), loss=loss, **settings)
    inputs, target = torch.tensor(x), torch.tensor(y)
    return lambda: model.train_on_batch(inputs, target)


def _keras_transformer(width: int) -> Any:
    import keras
    from keras import layers

    class Places(layers.Layer):
        """Adds to each position a vector that is learned."""

        def build(self, input_shape: Any) -> None:
            self.vectors = self.add_weight(shape=input_shape[1:], initializer="zeros")

        def call(self, x: Any) -> Any:
            return x + self.vectors

    tokens = keras.Input((hand_numpy.LENGTH,), dtype="int32")
    x = Places()(layers.Embedding(hand_numpy.VOCABULARY, width)(tokens))
    for _ in range(hand_numpy.DEPTH):
        normal = layers.LayerNormalization(epsilon=1e-5)(x)
        attention = layers.MultiHeadAttention(hand_numpy.HEADS, width // hand_numpy.HEADS)
        x = x + attention(normal, normal, use_causal_mask=True)
        up = layers.Dense(4 * width)(layers.LayerNormalization(epsilon=1e-5)(x))
        x = x + layers.Dense(width)(keras.activations.gelu(up, approximate=True))
    x = layers.LayerNormalization(epsilon=1e-5)(x)
    return keras.Model(tokens, layers.Dense(hand_numpy.VOCABULARY, use_bias=False)(x))
