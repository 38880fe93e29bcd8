"""What making a layer with its first weights costs beside the same layer of the backend's library, and of PyTorch.

The weights of one seed are the same on every backend, from the portable stream, whose large draws are shared by
threads. The libraries draw their own numbers, most in one thread however many they have: on NumPy and JAX by the calls
that an expert writes, on MLX and PyTorch by their layers. ``OMP_NUM_THREADS=1`` gives us one thread too.

    python benchmarks/initialization.py [--seconds 5] [--backends numpy torch mlx]
"""

from __future__ import annotations

import argparse
import math
import os
import time
from collections.abc import Callable
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", str(os.cpu_count()))  # before training.py sets it to 1

import numpy as np
import torch

import ember_ml
from ember_ml import nn, ops
from ember_ml.backend import installed_backends
from ember_ml.backend.selection import active
from training import best_times

SIZES: dict[str, tuple[str, tuple[int, ...]]] = {
    "Linear(2048, 2048)": ("Linear", (2048, 2048)),
    "Linear(512, 512)": ("Linear", (512, 512)),
    "Conv2d(256, 256, 3)": ("Conv2d", (256, 256, 3)),
    "Embedding(16384, 256)": ("Embedding", (16384, 256)),
}


def ours(kind: str, size: tuple[int, ...]) -> Callable[[], Any]:
    """Return a function that makes our layer."""
    calls = active().bench_calls
    assert calls is not None
    evaluate = calls.evaluate

    def make() -> Any:
        layer = getattr(nn, kind)(*size)
        for value in layer.parameters():
            evaluate(ops.asarray(value))
        return layer

    return make


def shapes_of(kind: str, size: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...], float]:
    """Return the shapes of weight and bias, and the limit of their uniform numbers."""
    inputs, outputs = size[:2]
    weight = (outputs, inputs, *2 * size[2:]) if kind == "Conv2d" else (outputs, inputs)
    return weight, (outputs,), math.prod(weight[1:]) ** -0.5


def by_hand(backend: str, kind: str, size: tuple[int, ...]) -> Callable[[], Any]:
    """Return a function that makes the weights as an expert does with the library of a backend."""
    if backend == "torch":
        return lambda: getattr(torch.nn, kind)(*size)
    if backend == "mlx":
        import mlx.core as mx
        import mlx.nn

        return lambda: mx.eval(getattr(mlx.nn, kind)(*size).parameters())
    weight, bias, limit = shapes_of(kind, size)
    if backend == "numpy":
        generator = np.random.default_rng(0)
        if kind == "Embedding":
            return lambda: generator.standard_normal(size, dtype=np.float32)

        def uniform(shape: tuple[int, ...]) -> np.ndarray:
            found = generator.random(shape, dtype=np.float32)
            found *= 2 * limit
            found -= limit
            return found

        return lambda: (uniform(weight), uniform(bias))
    from jax import block_until_ready, random

    key = random.key(0)
    if kind == "Embedding":
        return lambda: block_until_ready(random.normal(key, size))
    return lambda: block_until_ready([random.uniform(key, x, minval=-limit, maxval=limit) for x in (weight, bias)])


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=5.0, help="for each line")
    parser.add_argument("--backends", nargs="*", default=list(installed_backends()))
    options = parser.parse_args()
    print(f"{'backend':8} {'layer':22} {'ember ms':>9} {'by hand':>9} {'ratio':>6} {'PyTorch':>9} {'ratio':>6}")
    for backend in options.backends:
        ember_ml.set_backend(backend)
        for name, (kind, size) in SIZES.items():
            runs = {"ember": ours(kind, size), "hand": by_hand(backend, kind, size)}
            runs["PyTorch"] = by_hand("torch", kind, size)
            best = best_times(runs, options.seconds, time.perf_counter)
            ember, hand, theirs = best["ember"], best["hand"], best["PyTorch"]
            figures = f"{ember:9.3f} {hand:9.3f} {ember / hand:6.2f} {theirs:9.3f} {ember / theirs:6.2f}"
            print(f"{backend:8} {name:22} {figures}", flush=True)


if __name__ == "__main__":
    main()
