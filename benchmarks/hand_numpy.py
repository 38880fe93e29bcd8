"""Steps of training with backpropagation derived by hand, on NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

VOCABULARY, LENGTH, DEPTH, HEADS = 64, 64, 2, 4
STEEP, BEND = 1.5957691216057308, 0.044715
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
    """Return the mean loss of rows of logits, and its gradient."""
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


def transformer_names(state: dict[str, Any]) -> dict[str, str]:
    """Return the names that the hand-written models give to the parameters of ours."""
    parts = {"norm1": "attention_norm", "qkv": "attention.qkv", "out": "attention.output"}
    parts |= {"norm2": "mlp_norm", "up": "mlp.up", "down": "mlp.down"}
    found = {"tokens.weight": "embedding.weight", "places": "places.weight", "head.weight": "output.weight"}
    depth = sum(name.endswith("qkv.weight") for name in state)
    for kind in ("weight", "bias"):
        found[f"norm.{kind}"] = f"transformer.norm.{kind}"
        for block in range(depth):
            found |= {f"blocks.{block}.{a}.{kind}": f"transformer.blocks.{block}.{b}.{kind}" for a, b in parts.items()}
    return found


def normalized(x: np.ndarray, weight: np.ndarray, bias: np.ndarray) -> tuple[np.ndarray, tuple[Any, ...]]:
    """Layer normalization, and what its gradient needs."""
    centered = x - x.mean(axis=-1, keepdims=True)
    scale = 1.0 / np.sqrt(np.einsum("ij,ij->i", centered, centered)[:, None] / x.shape[-1] + 1e-5)
    centered *= scale
    y = centered * weight
    y += bias
    return y, (centered, scale, weight)


def normalized_back(g: np.ndarray, kept: tuple[Any, ...]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the gradients by the input, the weight and the bias."""
    unit, scale, weight = kept
    by_weight, by_bias = np.einsum("ij,ij->j", g, unit), g.sum(axis=0)
    g = g * weight
    mean = g.mean(axis=-1, keepdims=True)
    along = np.einsum("ij,ij->i", g, unit)[:, None] / g.shape[-1]
    g -= mean
    g -= unit * along
    g *= scale
    return g, by_weight, by_bias


def transformer(parameters: dict[str, np.ndarray], x: np.ndarray, y: np.ndarray) -> tuple[Any, dict[str, np.ndarray]]:
    """Loss and gradients of a decoder-only transformer."""
    p, batch, length = parameters, x.shape[0], x.shape[1]
    width, rows = p["tokens.weight"].shape[1], batch * length
    size = width // HEADS
    tokens = x.reshape(-1)
    hidden = p["tokens.weight"][tokens]
    hidden.reshape(batch, length, width)[:] += p["places"][:length]
    hide = np.triu(np.full((length, length), -np.inf, np.float32), 1)
    kept: list[tuple[Any, ...]] = []
    for block in range(DEPTH):
        b = f"blocks.{block}."
        n1, norm1 = normalized(hidden, p[b + "norm1.weight"], p[b + "norm1.bias"])
        qkv = n1 @ p[b + "qkv.weight"].T
        qkv += p[b + "qkv.bias"]
        q, k, v = qkv.reshape(batch, length, 3, HEADS, size).transpose(2, 0, 3, 1, 4)
        q = q * np.float32(size**-0.5)
        a = q @ k.swapaxes(-1, -2)
        a += hide
        a -= a.max(axis=-1, keepdims=True)
        np.exp(a, out=a)
        a /= a.sum(axis=-1, keepdims=True)
        mixed = (a @ v).transpose(0, 2, 1, 3).reshape(rows, width)
        hidden = hidden + mixed @ p[b + "out.weight"].T
        hidden += p[b + "out.bias"]
        n2, norm2 = normalized(hidden, p[b + "norm2.weight"], p[b + "norm2.bias"])
        u = n2 @ p[b + "up.weight"].T
        u += p[b + "up.bias"]
        half = u * u  # GELU in the form u * sigmoid(1.5957691 * (u + 0.044715 * u**3))
        half *= -BEND * STEEP
        half -= STEEP
        half *= u
        np.exp(half, out=half)
        half += 1
        np.reciprocal(half, out=half)
        g = u * half
        hidden = hidden + g @ p[b + "down.weight"].T
        hidden += p[b + "down.bias"]
        kept.append((n1, norm1, q, k, v, a, mixed, n2, norm2, u, half, g))
    last, norm = normalized(hidden, p["norm.weight"], p["norm.bias"])
    loss, d = cross_entropy(last @ p["head.weight"].T, y.reshape(-1))
    found: dict[str, np.ndarray] = {"head.weight": d.T @ last}
    d, found["norm.weight"], found["norm.bias"] = normalized_back(d @ p["head.weight"], norm)
    for block in reversed(range(DEPTH)):
        b = f"blocks.{block}."
        n1, norm1, q, k, v, a, mixed, n2, norm2, u, half, g = kept.pop()
        found[b + "down.weight"], found[b + "down.bias"] = d.T @ g, d.sum(axis=0)
        e = d @ p[b + "down.weight"]
        slope = u * u
        slope *= 3 * BEND * STEEP
        slope += STEEP
        slope *= u
        slope *= 1 - half
        slope += 1
        slope *= half
        e *= slope
        found[b + "up.weight"], found[b + "up.bias"] = e.T @ n2, e.sum(axis=0)
        e, found[b + "norm2.weight"], found[b + "norm2.bias"] = normalized_back(e @ p[b + "up.weight"], norm2)
        d = d + e
        found[b + "out.weight"], found[b + "out.bias"] = d.T @ mixed, d.sum(axis=0)
        m = (d @ p[b + "out.weight"]).reshape(batch, length, HEADS, size).transpose(0, 2, 1, 3)
        gqkv = np.empty((batch, length, 3, HEADS, size), np.float32)
        by = gqkv.transpose(2, 0, 3, 1, 4)
        by[2] = a.swapaxes(-1, -2) @ m
        s = m @ v.swapaxes(-1, -2)
        s -= np.einsum("bhij,bhij->bhi", s, a)[..., None]
        s *= a
        by[0] = s @ k
        by[0] *= np.float32(size**-0.5)
        by[1] = s.swapaxes(-1, -2) @ q
        flat = gqkv.reshape(rows, 3 * width)
        found[b + "qkv.weight"], found[b + "qkv.bias"] = flat.T @ n1, flat.sum(axis=0)
        e, found[b + "norm1.weight"], found[b + "norm1.bias"] = normalized_back(flat @ p[b + "qkv.weight"], norm1)
        d = d + e
    found["places"] = np.zeros_like(p["places"])
    found["places"][:length] = d.reshape(batch, length, width).sum(axis=0)
    ones = np.zeros((rows, p["tokens.weight"].shape[0]), np.float32)  # few words: a product beats np.add.at
    ones[np.arange(rows), tokens] = 1
    found["tokens.weight"] = ones.T @ d
    return loss, found


def step(name: str, state: dict[str, np.ndarray], x: np.ndarray, y: np.ndarray, rate: float) -> Callable[[], Any]:
    """Return one step: forward, backward, Adam."""
    if name == "transformer":
        named = {key: state[value].copy() for key, value in transformer_names(state).items()}
        optimizer = Adam(list(named.values()), rate)

        def run_transformer() -> Any:
            loss, found = transformer(named, x, y)
            optimizer.update([found[key] for key in named])
            return loss

        return run_transformer
    parameters = [value.copy() for value in state.values()]
    optimizer = Adam(parameters, rate)

    def run() -> Any:
        loss, gradients = perceptron(parameters, x, y)
        optimizer.update(gradients)
        return loss

    return run
