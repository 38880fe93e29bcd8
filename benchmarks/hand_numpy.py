"""Steps of training with backpropagation derived by hand, on NumPy."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr

Tensors = dict[str, np.ndarray]

VOCABULARY, LENGTH, DEPTH, HEADS = 64, 64, 2, 4
STEEP, BEND, DENSITY = 1.5957691216057308, 0.044715, 0.3989422804014327
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


def perceptron(p: Tensors, x: np.ndarray, y: np.ndarray) -> tuple[Any, Tensors]:
    """Loss and gradients of a multilayer perceptron with two hidden layers."""
    w1, b1, w2, b2, w3, b3 = p.values()
    h1 = np.maximum(x @ w1.T + b1, 0)
    h2 = np.maximum(h1 @ w2.T + b2, 0)
    loss, d = cross_entropy(h2 @ w3.T + b3, y)
    g3, gb3 = d.T @ h2, d.sum(axis=0)
    d = (d @ w3) * (h2 > 0)
    g2, gb2 = d.T @ h1, d.sum(axis=0)
    d = (d @ w2) * (h1 > 0)
    return loss, dict(zip(p, (d.T @ x, d.sum(axis=0), g2, gb2, g3, gb3), strict=True))


def transformer_names(state: dict[str, Any]) -> dict[str, str]:
    """Return the names that the hand-written language models give to the parameters of ours."""
    found = {"tokens.weight": "embedding.weight", "places": "places.weight", "head.weight": "output.weight"}
    return found | block_names(state, "transformer.")


def block_names(state: dict[str, Any], prefix: str) -> dict[str, str]:
    """Return the names that the hand-written blocks give to the parameters of ours, which begin with ``prefix``."""
    parts = {"norm1": "attention_norm", "qkv": "attention.qkv", "out": "attention.output"}
    parts |= {"norm2": "mlp_norm", "up": "mlp.up", "down": "mlp.down"}
    found = {}
    depth = sum(name.endswith("qkv.weight") for name in state)
    for kind in ("weight", "bias"):
        found[f"norm.{kind}"] = f"{prefix}norm.{kind}"
        for block in range(depth):
            found |= {f"blocks.{block}.{a}.{kind}": f"{prefix}blocks.{block}.{b}.{kind}" for a, b in parts.items()}
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


def rows_of(x: np.ndarray, weight: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """Return a linear map of rows."""
    y = x @ weight.T
    y += bias
    return y


def gelu(u: np.ndarray, is_exact: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return GELU, and what its gradient needs: the normal distribution, or the sigmoid that stands for it."""
    if is_exact:
        half = ndtr(u)
        return u * half, half
    half = u * u  # u * sigmoid(1.5957691 * (u + 0.044715 * u**3))
    half *= -BEND * STEEP
    half -= STEEP
    half *= u
    np.exp(half, out=half)
    half += 1
    np.reciprocal(half, out=half)
    return u * half, half


def gelu_slope(u: np.ndarray, half: np.ndarray, is_exact: bool) -> np.ndarray:
    """Return the derivative of GELU."""
    slope = u * u
    if is_exact:
        slope *= -0.5
        np.exp(slope, out=slope)
        slope *= u
        slope *= DENSITY
        slope += half
        return slope
    slope *= 3 * BEND * STEEP
    slope += STEEP
    slope *= u
    slope *= 1 - half
    slope += 1
    slope *= half
    return slope


class Dropout:
    """Masks that hold 0 and 1 / (1 - rate)."""

    def __init__(self, rate: float) -> None:
        self.rate, self.rng = rate, np.random.Generator(np.random.SFC64(0))

    def mask(self, shape: tuple[int, ...]) -> np.ndarray | None:
        """Return a mask for a tensor of this shape; None where nothing is dropped."""
        if not self.rate:
            return None
        mask = (self.rng.random(shape, dtype=np.float32) >= self.rate).astype(np.float32)
        mask *= np.float32(1 / (1 - self.rate))
        return mask


def attend(p: Tensors, b: str, x: np.ndarray, shape: tuple[int, int], hide: Any, drop: Dropout) -> tuple[Any, Any]:
    """Return what attention mixes from rows of normalized inputs, and what its gradient needs."""
    batch, length = shape
    rows, width = x.shape
    size = width // HEADS
    qkv = rows_of(x, p[b + "qkv.weight"], p[b + "qkv.bias"])
    q, k, v = qkv.reshape(batch, length, 3, HEADS, size).transpose(2, 0, 3, 1, 4)
    q = q * np.float32(size**-0.5)
    a = q @ k.swapaxes(-1, -2)
    if hide is not None:
        a += hide
    a -= a.max(axis=-1, keepdims=True)
    np.exp(a, out=a)
    a /= a.sum(axis=-1, keepdims=True)
    mask = drop.mask(a.shape)
    kept = a if mask is None else a * mask
    mixed = (kept @ v).transpose(0, 2, 1, 3).reshape(rows, width)
    return mixed, (q, k, v, a, kept, mask)


def attend_back(d: np.ndarray, kept: tuple[Any, ...]) -> np.ndarray:
    """Return the gradient by the rows of queries, keys and values."""
    q, k, v, a, given, mask = kept
    batch, heads, length, size = q.shape
    m = d.reshape(batch, length, heads, size).transpose(0, 2, 1, 3)
    gqkv = np.empty((batch, length, 3, heads, size), np.float32)
    by = gqkv.transpose(2, 0, 3, 1, 4)
    by[2] = given.swapaxes(-1, -2) @ m
    s = m @ v.swapaxes(-1, -2)
    if mask is not None:
        s *= mask
    s -= np.einsum("bhij,bhij->bhi", s, a)[..., None]
    s *= a
    by[0] = s @ k
    by[0] *= np.float32(size**-0.5)
    by[1] = s.swapaxes(-1, -2) @ q
    return gqkv.reshape(batch * length, -1)


class Form(NamedTuple):
    """What distinguishes the transformers."""

    depth: int
    is_exact: bool
    is_causal: bool
    drop: Dropout


def blocks(p: Tensors, hidden: np.ndarray, shape: tuple[int, int], form: Form) -> tuple[np.ndarray, list[Any]]:
    """Return what the blocks and the last normalization make of rows, and what their gradients need."""
    length = shape[1]
    hide = np.triu(np.full((length, length), -np.inf, np.float32), 1) if form.is_causal else None
    kept: list[tuple[Any, ...]] = []
    for block in range(form.depth):
        b = f"blocks.{block}."
        n1, norm1 = normalized(hidden, p[b + "norm1.weight"], p[b + "norm1.bias"])
        mixed, attention = attend(p, b, n1, shape, hide, form.drop)
        y = rows_of(mixed, p[b + "out.weight"], p[b + "out.bias"])
        mask1 = form.drop.mask(y.shape)
        if mask1 is not None:
            y *= mask1
        y += hidden
        hidden = y
        n2, norm2 = normalized(hidden, p[b + "norm2.weight"], p[b + "norm2.bias"])
        u = rows_of(n2, p[b + "up.weight"], p[b + "up.bias"])
        g, half = gelu(u, form.is_exact)
        y = rows_of(g, p[b + "down.weight"], p[b + "down.bias"])
        mask2 = form.drop.mask(y.shape)
        if mask2 is not None:
            y *= mask2
        y += hidden
        hidden = y
        kept.append((n1, norm1, attention, mixed, mask1, n2, norm2, u, half, g, mask2))
    last, norm = normalized(hidden, p["norm.weight"], p["norm.bias"])
    kept.append(norm)
    return last, kept


def blocks_back(p: Tensors, d: np.ndarray, kept: list[Any], form: Form) -> tuple[np.ndarray, Tensors]:
    """Return the gradients by the rows and by the parameters."""
    found: Tensors = {}
    d, found["norm.weight"], found["norm.bias"] = normalized_back(d, kept.pop())
    for block in reversed(range(form.depth)):
        b = f"blocks.{block}."
        n1, norm1, attention, mixed, mask1, n2, norm2, u, half, g, mask2 = kept.pop()
        e = d if mask2 is None else d * mask2
        found[b + "down.weight"], found[b + "down.bias"] = e.T @ g, e.sum(axis=0)
        e = e @ p[b + "down.weight"]
        e *= gelu_slope(u, half, form.is_exact)
        found[b + "up.weight"], found[b + "up.bias"] = e.T @ n2, e.sum(axis=0)
        e, found[b + "norm2.weight"], found[b + "norm2.bias"] = normalized_back(e @ p[b + "up.weight"], norm2)
        d = d + e
        e = d if mask1 is None else d * mask1
        found[b + "out.weight"], found[b + "out.bias"] = e.T @ mixed, e.sum(axis=0)
        flat = attend_back(e @ p[b + "out.weight"], attention)
        found[b + "qkv.weight"], found[b + "qkv.bias"] = flat.T @ n1, flat.sum(axis=0)
        e, found[b + "norm1.weight"], found[b + "norm1.bias"] = normalized_back(flat @ p[b + "qkv.weight"], norm1)
        d = d + e
    return d, found


def language_model(p: Tensors, x: np.ndarray, y: np.ndarray, form: Form) -> tuple[Any, Tensors]:
    """Loss and gradients of a decoder-only transformer."""
    batch, length = x.shape
    width, rows = p["tokens.weight"].shape[1], batch * length
    tokens = x.reshape(-1)
    hidden = p["tokens.weight"][tokens]
    hidden.reshape(batch, length, width)[:] += p["places"][:length]
    last, kept = blocks(p, hidden, (batch, length), form)
    loss, d = cross_entropy(last @ p["head.weight"].T, y.reshape(-1))
    by_head = d.T @ last
    d, found = blocks_back(p, d @ p["head.weight"], kept, form)
    found["head.weight"] = by_head
    found["places"] = np.zeros_like(p["places"])
    found["places"][:length] = d.reshape(batch, length, width).sum(axis=0)
    ones = np.zeros((rows, p["tokens.weight"].shape[0]), np.float32)  # few words: a product beats np.add.at
    ones[np.arange(rows), tokens] = 1
    found["tokens.weight"] = ones.T @ d
    return loss, found


def vision_transformer(p: Tensors, x: np.ndarray, y: np.ndarray, form: Form) -> tuple[Any, Tensors]:
    """Loss and gradients of a transformer over the patches of images, whose channels come first."""
    width, _, patch, _ = p["patches.weight"].shape
    batch, channels, height, _ = x.shape
    side = height // patch
    parts = (
        x.reshape(batch, channels, side, patch, side, patch)
        .transpose(0, 2, 4, 1, 3, 5)
        .reshape(-1, x[0].size // side**2)
    )
    hidden = rows_of(parts, p["patches.weight"].reshape(width, -1), p["patches.bias"])
    hidden.reshape(batch, -1, width)[:] += p["places"]
    last, kept = blocks(p, hidden, (batch, side * side), form)
    means = last.reshape(batch, -1, width).mean(axis=1)
    loss, d = cross_entropy(rows_of(means, p["head.weight"], p["head.bias"]), y)
    by_head = d.T @ means, d.sum(axis=0)
    d = d @ p["head.weight"] / np.float32(side * side)
    d, found = blocks_back(p, np.repeat(d, side * side, axis=0), kept, form)
    found["head.weight"], found["head.bias"] = by_head
    found["places"] = d.reshape(batch, -1, width).sum(axis=0)
    found["patches.weight"], found["patches.bias"] = (d.T @ parts).reshape(p["patches.weight"].shape), d.sum(axis=0)
    return loss, found


def _tensors_of(name: str, state: Tensors) -> Tensors:
    """Return copies of our parameters under the names that a model by hand gives them."""
    if name in ("transformer", "gpt"):
        return {key: state[value].copy() for key, value in transformer_names(state).items()}
    if name == "vit":
        names = {"places": "places", "patches.weight": "patches.weight", "patches.bias": "patches.bias"}
        names |= {"head.weight": "head.weight", "head.bias": "head.bias"}
        return {key: state[value].copy() for key, value in (names | block_names(state, "encoder.")).items()}
    if name == "lstm":
        return {key.removeprefix("lstm."): value.copy() for key, value in state.items()}
    if name.startswith("resnet"):  # each kernel as a matrix of taps by outputs
        found = {}
        for key, value in state.items():
            found[key] = value.transpose(2, 3, 1, 0).reshape(-1, len(value)) if value.ndim == 4 else value.copy()
        return found
    return {key: value.copy() for key, value in state.items()}


def _objective(name: str, x: np.ndarray, dropout: float) -> Callable[[Tensors, np.ndarray, np.ndarray], Any]:
    """Return what computes loss and gradients."""
    if name in ("transformer", "gpt"):
        form = Form(DEPTH, False, True, Dropout(0)) if name == "transformer" else Form(4, True, True, Dropout(dropout))
        return partial(language_model, form=form)
    if name == "vit":
        return partial(vision_transformer, form=Form(4, True, False, Dropout(0)))
    if name == "lstm":
        from hand_numpy_lstm import classifier

        return classifier
    if name.startswith("resnet"):
        from hand_numpy_resnet import resnet

        return resnet
    return perceptron


def step(
    name: str, state: Tensors, x: np.ndarray, y: np.ndarray, rate: float, dropout: float = 0.0
) -> Callable[[], Any]:
    """Return one step: forward, backward, Adam."""
    tensors, objective = _tensors_of(name, state), _objective(name, x, dropout)
    if name.startswith("resnet"):
        x = np.ascontiguousarray(np.moveaxis(x, 1, -1))
    trained = [key for key in tensors if "running" not in key]
    optimizer = Adam([tensors[key] for key in trained], rate)

    def run() -> Any:
        loss, found = objective(tensors, x, y)
        optimizer.update([found[key] for key in trained])
        return loss

    return run
