"""The ways to compute convolutions and attention with each library itself, for ``neural.py``.

A native program may keep its tensors in the layout that its library likes best: those come ready-made (``first``:
channels before space; ``weights``: the kernel as the library wants it; ``heads``: heads before length).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

from ember_ml import ops

__all__ = ["OURS", "WAYS", "inputs"]

Ways = dict[str, dict[str, Callable[..., Any]]]

BATCH, CHANNELS, RESULTS = 8, 32, 64
LENGTH, WINDOW = 4096, 9
SIDE, SQUARE = 64, 3
HEADS, TOKENS, DIM = 8, 512, 64

OURS: dict[str, Callable[..., Any]] = {
    "conv1d": lambda x, kernel, **native: ops.conv(x, kernel),
    "conv2d": lambda x, kernel, **native: ops.conv(x, kernel),
    "attention": lambda q, k, v, **native: ops.dot_product_attention(q, k, v),
}


def _numbers(*shape: int, seed: int = 0) -> Any:
    places = ops.arange(1, math.prod(shape) + 1, dtype="float32")
    return ops.reshape(ops.sin(ops.power(places, 1.3 + 0.1 * seed)), shape)


def inputs(backend: str) -> dict[str, dict[str, Any]]:
    """Return the arguments of each case on the active backend."""
    found: dict[str, dict[str, Any]] = {}
    for case, sizes, window in (("conv1d", (LENGTH,), (WINDOW,)), ("conv2d", (SIDE, SIDE), (SQUARE, SQUARE))):
        x, kernel = _numbers(BATCH, *sizes, CHANNELS), _numbers(*window, CHANNELS, RESULTS, seed=1)
        weights = ops.moveaxis(kernel, -1, 0) if backend == "mlx" else ops.moveaxis(kernel, (-1, -2), (0, 1))
        native = {"first": ops.copy(ops.moveaxis(x, -1, 1)), "weights": ops.copy(weights)}
        found[case] = {"x": x, "kernel": kernel, **native}
    q, k, v = (_numbers(BATCH // 2, TOKENS, HEADS, DIM, seed=seed) for seed in range(3))
    heads = [ops.copy(ops.swapaxes(x, 1, 2)) for x in (q, k, v)]
    found["attention"] = {"q": q, "k": k, "v": v, **dict(zip(("hq", "hk", "hv"), heads, strict=True))}
    return found


def _numpy() -> Ways:
    import numpy as np
    from numpy.lib.stride_tricks import sliding_window_view

    def windows(x: Any, kernel: Any, **native: Any) -> Any:
        window, results = kernel.shape[:-2], kernel.shape[-1]
        axes = tuple(range(1, x.ndim - 1))
        seen = np.moveaxis(sliding_window_view(x, window, axis=axes), x.ndim - 1, -1)
        rows = seen.reshape(-1, kernel.size // results)
        return (rows @ kernel.reshape(-1, results)).reshape(*seen.shape[: x.ndim - 1], results)

    def by_image(x: Any, kernel: Any, **native: Any) -> Any:
        window, results = kernel.shape[:-2], kernel.shape[-1]
        axes = tuple(range(1, x.ndim - 1))
        seen = np.moveaxis(sliding_window_view(x, window, axis=axes), x.ndim - 1, -1)
        result = np.empty((*seen.shape[: x.ndim - 1], results), x.dtype)
        weights = kernel.reshape(-1, results)
        half = x.shape[1] // 2
        for i in range(BATCH):
            for part in (slice(half), slice(half, None)):
                np.matmul(seen[i, part].reshape(-1, len(weights)), weights, out=result[i, part].reshape(-1, results))
        return result

    def shifts(x: Any, kernel: Any, **native: Any) -> Any:
        sizes = [n - k + 1 for n, k in zip(x.shape[1:-1], kernel.shape[:-2], strict=True)]
        result = np.zeros((BATCH, *sizes, RESULTS), x.dtype)
        for place in np.ndindex(*kernel.shape[:-2]):
            cut = tuple(slice(p, p + n) for p, n in zip(place, sizes, strict=True))
            result += x[(slice(None), *cut)] @ kernel[place]
        return result

    def whole(hq: Any, hk: Any, hv: Any, **ours: Any) -> Any:
        weights = (hq * np.float32(DIM**-0.5)) @ hk.swapaxes(-1, -2)
        weights -= weights.max(-1, keepdims=True)
        np.exp(weights, out=weights)
        weights /= weights.sum(-1, keepdims=True)
        return weights @ hv

    def by_head(hq: Any, hk: Any, hv: Any, **ours: Any) -> Any:
        result = np.empty_like(hq)
        for place in np.ndindex(*hq.shape[:2]):
            weights = (hq[place] * np.float32(DIM**-0.5)) @ hk[place].T
            weights -= weights.max(-1, keepdims=True)
            np.exp(weights, out=weights)
            result[place] = weights @ hv[place] / weights.sum(-1, keepdims=True)
        return result

    conv = {"windows": windows, "windows, half an image at a time": by_image, "shifts": shifts}
    return {"conv1d": conv, "conv2d": conv, "attention": {"whole": whole, "head by head": by_head}}


def _torch() -> Ways:
    import torch
    import torch.nn.functional as F

    def channels_last(x: Any, kernel: Any, **native: Any) -> Any:
        return F.conv2d(x.permute(0, 3, 1, 2), kernel.permute(3, 2, 0, 1)).permute(0, 2, 3, 1)

    def as_image(x: Any, kernel: Any, **native: Any) -> Any:
        image = F.conv2d(x.mT.unsqueeze(2), kernel.permute(2, 1, 0).unsqueeze(2))
        return image.squeeze(2).mT

    attention = torch.nn.functional.scaled_dot_product_attention
    return {
        "conv1d": {"channels first": lambda first, weights, **rest: F.conv1d(first, weights), "as an image": as_image},
        "conv2d": {"channels first": lambda first, weights, **rest: F.conv2d(first, weights), "last": channels_last},
        "attention": {
            "heads first": lambda hq, hk, hv, **rest: attention(hq, hk, hv),
            "transposed": lambda q, k, v, **rest: attention(*(t.transpose(1, 2) for t in (q, k, v))).transpose(1, 2),
        },
    }


def _mlx() -> Ways:
    import mlx.core as mx

    def strided(x: Any, kernel: Any, **native: Any) -> Any:
        *window, channels, results = kernel.shape
        sizes = [n - k + 1 for n, k in zip(x.shape[1:-1], window, strict=True)]
        steps = [math.prod(x.shape[i + 1 :]) for i in range(x.ndim)]
        shape = (x.shape[0], *sizes, *window, channels)
        seen = mx.as_strided(x, shape, (steps[0], *steps[1:-1], *steps[1:-1], 1))
        rows = mx.reshape(seen, (-1, kernel.size // results))
        return mx.reshape(rows @ mx.reshape(kernel, (-1, results)), (*shape[: x.ndim - 1], results))

    def joined(x: Any, kernel: Any, **native: Any) -> Any:
        sizes = [n - k + 1 for n, k in zip(x.shape[1:-1], kernel.shape[:-2], strict=True)]
        places = itertools.product(*map(range, kernel.shape[:-2]))
        cuts = ((slice(p, p + n) for p, n in zip(place, sizes, strict=True)) for place in places)
        return mx.concatenate([x[(slice(None), *cut)] for cut in cuts], axis=-1) @ mx.reshape(kernel, (-1, RESULTS))

    def transposed(q: Any, k: Any, v: Any, **native: Any) -> Any:
        heads = (mx.swapaxes(x, 1, 2) for x in (q, k, v))
        return mx.swapaxes(mx.fast.scaled_dot_product_attention(*heads, scale=DIM**-0.5), 1, 2)

    def heads_first(hq: Any, hk: Any, hv: Any, **ours: Any) -> Any:
        return mx.fast.scaled_dot_product_attention(hq, hk, hv, scale=DIM**-0.5)

    def native(x: Any, weights: Any, **rest: Any) -> Any:
        return mx.conv_general(x, weights)

    conv: dict[str, Callable[..., Any]] = {"windows": strided, "windows, joined": joined, "conv_general": native}
    return {"conv1d": conv, "conv2d": conv, "attention": {"transposed": transposed, "heads first": heads_first}}


WAYS: dict[str, Callable[[], Ways]] = {"numpy": _numpy, "torch": _torch, "mlx": _mlx}
