"""Two hundred steps of training are the same on every backend, and across switches between them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

import ember_ml
from ember_ml import nn, ops
from ember_ml.backend import installed_backends
from ember_ml.training import Trainer, optimizers

STEPS = 200
OPTIMIZERS: dict[str, tuple[Callable[[], optimizers.Optimizer], float]] = {
    "sgd": (lambda: optimizers.SGD(0.05), 1e-4),
    "momentum": (lambda: optimizers.SGD(0.02, momentum=0.9), 1e-4),
    "adam": (lambda: optimizers.Adam(2e-3), 1e-4),
    "adamw": (lambda: optimizers.AdamW(2e-3), 1e-4),
    "rmsprop": (lambda: optimizers.RMSprop(1e-3), 1e-4),
    "adagrad": (lambda: optimizers.Adagrad(0.01), 1e-4),
    "lion": (lambda: optimizers.Lion(1e-3), 1e-3),
    "adafactor": (lambda: optimizers.Adafactor(5e-3), 1e-3),
    "muon": (lambda: optimizers.Muon(5e-3), 1e-3),
}


class Convolutional(nn.Module):
    def __init__(self) -> None:
        self.first, self.second = nn.Conv2d(1, 4, kernel_size=3), nn.Conv2d(4, 8, kernel_size=3)
        self.head = nn.Linear(8, 4)

    def forward(self, x: Any) -> Any:
        x = ops.relu(self.second(ops.relu(self.first(x))))
        return self.head(ops.mean(x, axis=(1, 2)))


class Recurrent(nn.Module):
    def __init__(self) -> None:
        self.recurrent, self.head = nn.LSTM(3, 12), nn.Linear(12, 4)

    def forward(self, x: Any) -> Any:
        y = self.recurrent(x)
        return self.head(y[:, -1])


class Transformer(nn.Module):
    def __init__(self) -> None:
        self.embed = nn.Embedding(16, 16)
        self.blocks = [nn.blocks.TransformerBlock(16, heads=2, causal=True) for _ in range(2)]
        self.norm, self.head = nn.LayerNorm(16), nn.Linear(16, 16)

    def forward(self, x: Any) -> Any:
        x = self.embed(x)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def perceptron() -> nn.Module:
    return nn.Sequential(nn.Linear(6, 16), ops.relu, nn.Linear(16, 16), ops.relu, nn.Linear(16, 4))


MODELS: dict[str, Callable[[], nn.Module]] = {
    "perceptron": perceptron,
    "convolutional": Convolutional,
    "recurrent": Recurrent,
    "transformer": Transformer,
}


def batches(model: str) -> list[tuple[Any, Any]]:
    """Four batches, used in turn; learnable, so that the loss falls."""
    shape = {"perceptron": (32, 6), "convolutional": (32, 6, 6, 1), "recurrent": (32, 7, 3), "transformer": (32, 10)}[
        model
    ]
    if model == "transformer":
        tokens = ops.random_integers((32, 11), 0, 16, seed=3)
        tokens = ops.cumsum(ops.remainder(tokens, 3), axis=1)
        tokens = ops.remainder(tokens, 16)
        x, y = tokens[:, :-1], tokens[:, 1:]
    else:
        x = ops.random_normal(shape, seed=3)
        summary = ops.reshape(x, (32, -1))[:, :6]
        y = ops.argmax(ops.matmul(summary, ops.random_normal((6, 4), seed=4)), axis=-1)
    return [(x[i : i + 8], y[i : i + 8]) for i in range(0, 32, 8)]


def run(model: str, optimizer: str, backends: list[str]) -> tuple[list[float], dict[str, list[Any]]]:
    """The losses of a run, whose quarters the backends compute in turn, and the parameters that it started from."""
    ember_ml.set_backend(backends[0])
    ops.random.seed(12)
    made = MODELS[model]()
    start = {name: ops.to_numpy(x).tolist() for name, x in made.state_dict().items()}
    trainer = Trainer(made, OPTIMIZERS[optimizer][0](), "sparse_categorical_crossentropy", progress=False)
    data = batches(model)
    for step in range(STEPS):
        if step % (STEPS // 4) == 0:
            ember_ml.set_backend(backends[step // (STEPS // 4) % len(backends)])
            data = batches(model)
        trainer.step(data[step % 4])
    return list(trainer.history["loss"]), start


@cache
def reference(model: str, optimizer: str) -> tuple[list[float], dict[str, list[Any]]]:
    found = run(model, optimizer, ["numpy"])
    assert sum(found[0][-4:]) < 0.8 * sum(found[0][:4])  # it learns
    return found


def check(losses: list[float], model: str, optimizer: str) -> None:
    wanted, _ = reference(model, optimizer)
    tolerance = OPTIMIZERS[optimizer][1]
    for step, (found, want) in enumerate(zip(losses, wanted, strict=True)):
        assert abs(found - want) <= tolerance * max(want, 0.1), f"step {step}: {found}, not {want}"


@pytest.mark.parametrize("model", list(MODELS))
def test_models(backend: str, model: str) -> None:
    losses, start = run(model, "adam", [backend])
    assert start == reference(model, "adam")[1]  # to the last bit
    check(losses, model, "adam")


@pytest.mark.parametrize("optimizer", list(OPTIMIZERS))
def test_optimizers(backend: str, optimizer: str) -> None:
    check(run("perceptron", optimizer, [backend])[0], "perceptron", optimizer)


@pytest.mark.parametrize("model", list(MODELS))
def test_switches(model: str) -> None:
    names = list(installed_backends())
    losses, _ = run(model, "adam", [*names[1:], *names[:1]])
    ember_ml.set_backend("numpy")
    check(losses, model, "adam")


@pytest.mark.parametrize("optimizer", list(OPTIMIZERS))
def test_switches_of_optimizers(optimizer: str) -> None:
    names = list(installed_backends())
    losses, _ = run("perceptron", optimizer, [*names[1:], *names[:1]])
    ember_ml.set_backend("numpy")
    check(losses, "perceptron", optimizer)
