"""A residual network with backpropagation derived by hand, on NumPy; channels come last, as its products want them."""

from __future__ import annotations

from typing import Any

import numpy as np
from hand_numpy import Tensors, cross_entropy, rows_of

MOMENTUM, EPSILON = 0.1, 1e-5


def _conv(x: np.ndarray, weight: np.ndarray, size: int, stride: int) -> tuple[np.ndarray, tuple[Any, ...]]:
    """Return a convolution padded by half its size, and what its gradient needs; ``weight`` is (taps, outputs)."""
    batch, height, width, channels = x.shape
    if size == 1:
        windows = x[:, ::stride, ::stride]
        out = windows.shape[:3]
    else:
        pad = size // 2
        wide = np.zeros((batch, height + 2 * pad, width + 2 * pad, channels), np.float32)
        wide[:, pad:-pad, pad:-pad] = x
        views = np.lib.stride_tricks.sliding_window_view(wide, (size, size), (1, 2))[:, ::stride, ::stride]
        windows = views.transpose(0, 1, 2, 4, 5, 3)
        out = windows.shape[:3]
    columns = windows.reshape(-1, size * size * channels)
    return (columns @ weight).reshape(*out, -1), (columns, x.shape, size, stride)


def _conv_back(g: np.ndarray, weight: np.ndarray, kept: tuple[Any, ...], is_first: bool = False) -> tuple[Any, Any]:
    """Return the gradients by the inputs and by the weight."""
    columns, shape, size, stride = kept
    rows = g.reshape(-1, g.shape[-1])
    by_weight = columns.T @ rows
    if is_first:
        return None, by_weight
    batch, height, width, channels = shape
    _, down, across, _ = g.shape
    parts = rows @ weight.T
    if size == 1 and stride == 1:
        return parts.reshape(shape), by_weight
    pad = size // 2
    found = np.zeros((batch, height + 2 * pad, width + 2 * pad, channels), np.float32)
    parts = parts.reshape(batch, down, across, size, size, channels)
    for i in range(size):
        for j in range(size):
            found[:, i : i + stride * down : stride, j : j + stride * across : stride] += parts[:, :, :, i, j]
    return found[:, pad : pad + height, pad : pad + width], by_weight


def _norm(x: np.ndarray, p: Tensors, name: str) -> tuple[np.ndarray, tuple[Any, ...]]:
    """Return what batch normalization makes of its inputs; it changes the running moments."""
    rows = x.reshape(-1, x.shape[-1])
    count = len(rows)
    mean = rows.mean(axis=0)
    unit = rows - mean
    variance = np.einsum("ij,ij->j", unit, unit) / np.float32(count)
    p[name + ".running_mean"] += MOMENTUM * (mean - p[name + ".running_mean"])
    p[name + ".running_var"] += MOMENTUM * (variance * (count / (count - 1)) - p[name + ".running_var"])
    scale = 1 / np.sqrt(variance + EPSILON)
    unit *= scale
    y = unit * p[name + ".weight"]
    y += p[name + ".bias"]
    return y.reshape(x.shape), (unit, scale * p[name + ".weight"])


def _norm_back(g: np.ndarray, kept: tuple[Any, ...], found: Tensors, name: str) -> np.ndarray:
    """Return the gradient by the inputs."""
    unit, scale = kept
    rows = g.reshape(unit.shape)
    count = np.float32(len(rows))
    found[name + ".bias"], found[name + ".weight"] = rows.sum(axis=0), np.einsum("ij,ij->j", rows, unit)
    unit *= -found[name + ".weight"] / count
    unit += rows
    unit -= found[name + ".bias"] / count
    unit *= scale
    return unit.reshape(g.shape)


def _pool(x: np.ndarray) -> tuple[np.ndarray, tuple[Any, ...]]:
    """Return the maxima of windows of three, every second one."""
    batch, height, width, channels = x.shape
    wide = np.full((batch, height + 2, width + 2, channels), -np.inf, np.float32)
    wide[:, 1:-1, 1:-1] = x
    cuts = [wide[:, i : i + height : 2, j : j + width : 2] for i in range(3) for j in range(3)]
    best = cuts[0].copy()
    for cut in cuts[1:]:
        np.maximum(best, cut, out=best)
    return best, (wide, best)


def _pool_back(g: np.ndarray, kept: tuple[Any, ...]) -> np.ndarray:
    """Return the gradient by the inputs: that of a window goes to the first of its largest elements."""
    wide, best = kept
    _, height, width, _ = g.shape
    found = np.zeros_like(wide)
    is_open = np.ones(g.shape, bool)
    for i in range(3):
        for j in range(3):
            place = slice(None), slice(i, i + 2 * height, 2), slice(j, j + 2 * width, 2)
            hit = wide[place] == best
            hit &= is_open
            is_open ^= hit
            found[place] += g * hit
    return found[:, 1:-1, 1:-1]


def _unit(
    x: np.ndarray, p: Tensors, conv: str, norm: str, size: int, stride: int
) -> tuple[np.ndarray, tuple[Any, ...]]:
    y, kept = _conv(x, p[conv + ".weight"], size, stride)
    y, moments = _norm(y, p, norm)
    return y, (kept, moments)


def _unit_back(
    g: np.ndarray, p: Tensors, kept: Any, found: Tensors, conv: str, norm: str, is_first: bool = False
) -> Any:
    g = _norm_back(g, kept[1], found, norm)
    g, found[conv + ".weight"] = _conv_back(g, p[conv + ".weight"], kept[0], is_first)
    return g


def resnet(p: Tensors, x: np.ndarray, y: np.ndarray) -> tuple[Any, Tensors]:
    """Loss and gradients; the running moments in ``p`` are changed."""
    found: Tensors = {}
    x, stem = _unit(x, p, "conv1", "bn1", 7, 2)
    shown = np.maximum(x, 0, out=x)
    x, pooled = _pool(shown)
    kept = []
    for stage in range(4):
        for block in range(2):
            b = f"stages.{stage}.{block}."
            stride = 2 if stage and not block else 1
            first, one = _unit(x, p, b + "conv1", b + "bn1", 3, stride)
            np.maximum(first, 0, out=first)
            out, two = _unit(first, p, b + "conv2", b + "bn2", 3, 1)
            short = None
            if b + "downsample.0.weight" in p:
                added, short = _unit(x, p, b + "downsample.0", b + "downsample.1", 1, stride)
                out += added
            else:
                out += x
            x = np.maximum(out, 0, out=out)
            kept.append((b, first, x, one, two, short))
    area = np.float32(x.shape[1] * x.shape[2])
    means = x.mean(axis=(1, 2))
    loss, d = cross_entropy(rows_of(means, p["fc.weight"], p["fc.bias"]), y)
    found["fc.weight"], found["fc.bias"] = d.T @ means, d.sum(axis=0)
    g = np.broadcast_to((d @ p["fc.weight"] / area)[:, None, None], x.shape)
    for b, first, out, one, two, short in reversed(kept):
        g = g * (out > 0)
        e = _unit_back(g, p, two, found, b + "conv2", b + "bn2")
        e = e * (first > 0)
        e = _unit_back(e, p, one, found, b + "conv1", b + "bn1")
        g = e + (g if short is None else _unit_back(g, p, short, found, b + "downsample.0", b + "downsample.1"))
    g = _pool_back(g, pooled) * (shown > 0)
    _unit_back(g, p, stem, found, "conv1", "bn1", is_first=True)
    return loss, found
