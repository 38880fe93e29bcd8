"""Steps of training with backpropagation derived by hand, on NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

VOCABULARY, LENGTH = 64, 64
BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8


class Adam:
    """Adam, in place."""

    def __init__(self, parameters: list[np.ndarray], rate: float) -> None:
        self.parameters, self.rate, self.count = parameters, rate, 0
        self.first = [np.zeros_like(p) for p in parameters]
        self.second = [np.zeros_like(p) for p in parameters]

    def update(self, gradients: list[np.ndarray]) -> None:
        """Change the parameters by their gradients."""
        self.count += 1
        factor = self.rate / (1 - BETA1**self.count)
        root = (1 - BETA2**self.count) ** 0.5
        for p, g, m, v in zip(self.parameters, gradients, self.first, self.second, strict=True):
            m *= BETA1
            m += (1 - BETA1) * g
            v *= BETA2
            v += (1 - BETA2) * (g * g)
            p -= factor * (m / (np.sqrt(v) / root + EPSILON))


def cross_entropy(z: np.ndarray, y: np.ndarray) -> tuple[Any, np.ndarray]:
    """The mean loss of rows of logits, and its gradient."""
    rows = np.arange(len(y))
    z = z - z.max(axis=1, keepdims=True)
    e = np.exp(z)
    s = e.sum(axis=1, keepdims=True)
    loss = (np.log(s[:, 0]) - z[rows, y]).mean()
    e /= s
    e[rows, y] -= 1
    e /= len(y)
    return loss, e


def perceptron(parameters: list[np.ndarray], x: np.ndarray, y: np.ndarray) -> tuple[Any, list[np.ndarray]]:
    """Loss and gradients of a multilayer perceptron with two hidden layers."""
    w1, b1, w2, b2, w3, b3 = parameters
    h1 = np.maximum(x @ w1.T + b1, 0)
    h2 = np.maximum(h1 @ w2.T + b2, 0)
    loss, d = cross_entropy(h2 @ w3.T + b3, y)
    g3, gb3 = d.T @ h2, d.sum(axis=0)
    d = (d @ w3) * (h2 > 0)
    g2, gb2 = d.T @ h1, d.sum(axis=0)
    d = (d @ w2) * (h1 > 0)
    return loss, [d.T @ x, d.sum(axis=0), g2, gb2, g3, gb3]


def step(name: str, state: dict[str, np.ndarray], x: np.ndarray, y: np.ndarray, rate: float) -> Callable[[], Any]:
    """One step: forward, backward, Adam."""
    parameters = [value.copy() for value in state.values()]
    optimizer = Adam(parameters, rate)
    gradients_of = perceptron

    def run() -> Any:
        loss, gradients = gradients_of(parameters, x, y)
        optimizer.update(gradients)
        return loss

    return run
