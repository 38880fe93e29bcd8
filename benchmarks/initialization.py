"""What making a layer with its first weights costs beside the same layer of PyTorch.

The weights of one seed are the same on every backend, from the portable stream, whose large draws are shared by
threads. PyTorch draws its own numbers, in one thread however many it has. ``OMP_NUM_THREADS=1`` gives us one too.

    python benchmarks/initialization.py [--seconds 5] [--backends numpy torch mlx]
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", str(os.cpu_count()))  # before training.py sets it to 1

import torch

import ember_ml
from ember_ml import nn, ops
from ember_ml.backend import installed_backends
from ember_ml.backend.selection import active
from training import best_times

SIZES: dict[str, tuple[type[Any], type[Any], tuple[int, ...]]] = {
    "Linear(2048, 2048)": (nn.Linear, torch.nn.Linear, (2048, 2048)),
    "Linear(512, 512)": (nn.Linear, torch.nn.Linear, (512, 512)),
    "Conv2d(256, 256, 3)": (nn.Conv2d, torch.nn.Conv2d, (256, 256, 3)),
    "Embedding(16384, 256)": (nn.Embedding, torch.nn.Embedding, (16384, 256)),
}


def ours(kind: type[Any], size: tuple[int, ...]) -> Callable[[], Any]:
    """Return a function that makes our layer."""
    calls = active().bench_calls
    assert calls is not None
    evaluate = calls.evaluate

    def make() -> Any:
        layer = kind(*size)
        for value in layer.parameters():
            evaluate(ops.asarray(value))
        return layer

    return make


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=5.0, help="for each line")
    parser.add_argument("--backends", nargs="*", default=list(installed_backends()))
    options = parser.parse_args()
    print(f"{'backend':8} {'layer':22} {'ember ms':>9} {'PyTorch':>9} {'ratio':>6}")
    for backend in options.backends:
        ember_ml.set_backend(backend)
        for name, (kind, other, size) in SIZES.items():
            runs = {"ember": ours(kind, size), "PyTorch": lambda other=other, size=size: other(*size)}
            best = best_times(runs, options.seconds, time.perf_counter)
            ember, theirs = best["ember"], best["PyTorch"]
            print(f"{backend:8} {name:22} {ember:9.3f} {theirs:9.3f} {ember / theirs:6.2f}", flush=True)


if __name__ == "__main__":
    main()
