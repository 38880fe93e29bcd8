"""Steps of training as they are written by hand on PyTorch, and on Keras over it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import hand_numpy
import numpy as np
import torch
import training_models
from torch.nn import functional as F


class Block(torch.nn.Module):
    """A pre-norm transformer block."""

    def __init__(self, width: int, heads: int, exact: bool = False, dropout: float = 0.0, causal: bool = True) -> None:
        super().__init__()
        self.heads, self.dropout, self.causal = heads, dropout, causal
        self.form = "none" if exact else "tanh"
        self.norm1 = torch.nn.LayerNorm(width)
        self.qkv, self.out = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)
        self.norm2 = torch.nn.LayerNorm(width)
        self.up, self.down = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, t, c = x.shape
        p = self.dropout
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=p, is_causal=self.causal)
        y = self.out(y.transpose(1, 2).reshape(b, t, c))
        x = x + (F.dropout(y, p) if p else y)
        y = self.down(F.gelu(self.up(self.norm2(x)), approximate=self.form))
        return x + (F.dropout(y, p) if p else y)


class Transformer(torch.nn.Module):
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
        self.tokens = torch.nn.Embedding(vocabulary, width)
        self.places = torch.nn.Parameter(torch.zeros(length, width))
        self.blocks = torch.nn.Sequential(*(Block(width, heads, exact, dropout) for _ in range(depth)))
        self.norm, self.head = torch.nn.LayerNorm(width), torch.nn.Linear(width, vocabulary, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.norm(self.blocks(self.tokens(x) + self.places[: x.shape[1]])))


class BasicBlock(torch.nn.Module):
    """A block of ResNet-18."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = torch.nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = torch.nn.BatchNorm2d(outputs)
        self.conv2 = torch.nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = torch.nn.BatchNorm2d(outputs)
        if inputs != outputs:
            self.downsample = torch.nn.Sequential(
                torch.nn.Conv2d(inputs, outputs, 1, stride, bias=False), torch.nn.BatchNorm2d(outputs)
            )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        return F.relu(y + (self.downsample(x) if hasattr(self, "downsample") else x))


class ResNet(torch.nn.Module):
    """ResNet-18."""

    def __init__(self, channels: tuple[int, ...], classes: int) -> None:
        super().__init__()
        first = channels[0]
        self.conv1 = torch.nn.Conv2d(3, first, 7, 2, 3, bias=False)
        self.bn1 = torch.nn.BatchNorm2d(first)
        stages = [
            torch.nn.Sequential(BasicBlock(n, m, 1 if n == m else 2), BasicBlock(m, m, 1))
            for n, m in zip((first, *channels), channels, strict=False)
        ]
        self.stages = torch.nn.Sequential(*stages)
        self.fc = torch.nn.Linear(channels[-1], classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 3, 2, 1)
        return self.fc(self.stages(x).mean((2, 3)))


class VisionTransformer(torch.nn.Module):
    """Patches of an image as a sequence, and the mean of what a transformer makes of them."""

    def __init__(self, places: int, width: int, depth: int, heads: int, patch: int, classes: int) -> None:
        super().__init__()
        self.places = torch.nn.Parameter(torch.zeros(places, width))
        self.patches = torch.nn.Conv2d(3, width, patch, patch)
        self.blocks = torch.nn.Sequential(*(Block(width, heads, exact=True, causal=False) for _ in range(depth)))
        self.norm, self.head = torch.nn.LayerNorm(width), torch.nn.Linear(width, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.patches(x).flatten(2).transpose(1, 2) + self.places
        return self.head(self.norm(self.blocks(x)).mean(1))


class Classifier(torch.nn.Module):
    """Two recurrent layers, and the class that the last position tells."""

    def __init__(self, features: int, width: int, classes: int) -> None:
        super().__init__()
        self.lstm = torch.nn.LSTM(features, width, num_layers=2, batch_first=True)
        self.head = torch.nn.Linear(width, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.lstm(x)[0][:, -1])


def make_model(name: str, state: dict[str, np.ndarray], dropout: float) -> torch.nn.Module:
    """Return the model, with parameters of its own."""
    sizes = training_models
    if name == "transformer":
        return Transformer(sizes.VOCABULARY, sizes.LENGTH, sizes.WIDTH, hand_numpy.DEPTH, sizes.HEADS)
    if name == "gpt":
        shape = (sizes.VOCABULARY, sizes.LENGTH, sizes.WIDTH, sizes.DEPTH, sizes.HEADS)
        return Transformer(*shape, exact=True, dropout=dropout)
    if name == "vit":
        places = (sizes.PIXELS // sizes.PATCH) ** 2
        return VisionTransformer(places, sizes.WIDTH, sizes.DEPTH, sizes.HEADS, sizes.PATCH, sizes.CLASSES)
    if name == "lstm":
        return Classifier(sizes.FEATURES, sizes.WIDTH, sizes.CLASSES)
    if name.startswith("resnet"):
        return ResNet(sizes.CHANNELS, sizes.CLASSES)
    layers: list[torch.nn.Module] = []
    for place in (0, 2, 4):
        weight = state[f"{place}.weight"]
        layers += [torch.nn.Linear(weight.shape[1], weight.shape[0]), torch.nn.ReLU()]
    return torch.nn.Sequential(*layers[:-1])


def model_of(name: str, state: dict[str, np.ndarray], dropout: float) -> torch.nn.Module:
    """Return the model with these parameters, which have the same order."""
    model = make_model(name, state, dropout)
    if name in ("transformer", "gpt"):
        names = hand_numpy.transformer_names(state)
        state = {key: state[names[key]] for key in model.state_dict()}
    own = {key: x for key, x in model.state_dict().items() if not key.endswith("num_batches_tracked")}
    values = [torch.tensor(value) for value in state.values()]
    found = dict(zip(own, values, strict=True))
    assert all(x.shape == found[key].shape for key, x in own.items())
    model.load_state_dict(found)
    return model


def step(
    name: str,
    state: dict[str, np.ndarray],
    x: np.ndarray,
    y: np.ndarray,
    rate: float,
    compiled: bool,
    dropout: float = 0.0,
) -> Callable[[], Any]:
    """Return one step: forward, backward, fused Adam."""
    model: Any = model_of(name, state, dropout)
    optimizer = torch.optim.Adam(model.parameters(), lr=rate, fused=True)
    inputs, target = torch.tensor(x), torch.tensor(y)
    if name.endswith("_last"):
        model, inputs = model.to(memory_format=torch.channels_last), inputs.to(memory_format=torch.channels_last)

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
