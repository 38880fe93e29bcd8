"""Count what a reader walks through: the Python calls, files and changes of file of a few common jobs, once warm.

    python benchmarks/reader_walks.py [--list WALK]

A call counts where its code is of the package; ``--list`` prints the calls of one walk in order.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any

import ember_ml
from ember_ml import nn, ops, training

PACKAGE = str(Path(ember_ml.__file__).parent)


def walk(job: Callable[[], Any]) -> list[tuple[str, str]]:
    """Return file and function of each call of the package's code that ``job`` makes."""
    found: list[tuple[str, str]] = []

    def note(frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        if event == "call" and (code.co_filename.startswith((PACKAGE, "<ember_ml"))):
            found.append((code.co_filename.removeprefix(PACKAGE), code.co_qualname))

    sys.setprofile(note)
    try:
        job()
    finally:
        sys.setprofile(None)
    return found


def _step(backend: str) -> Callable[[], Any]:
    trainer = training.Trainer(nn.Linear(4, 2), training.optimizers.SGD(0.1), "mean_squared_error")
    batch = ops.ones((8, 4)), ops.ones((8, 2))
    return lambda: trainer.step(batch)


def _gradient(backend: str) -> Callable[[], Any]:
    gradient, x = ops.grad(lambda x: ops.sum(ops.multiply(ops.sin(x), x))), ops.ones(4)
    return lambda: gradient(x)


def _stft(backend: str) -> Callable[[], Any]:
    x = ops.ones(512)
    return lambda: ops.stft(x, 128, 64)


def _normalization(backend: str) -> Callable[[], Any]:
    x, weight = ops.ones((4, 8)), ops.ones(8)
    return lambda: ops.layer_normalization(x, weight, weight)


def _mixed(backend: str) -> Callable[[], Any]:
    x = ops.ones(2)
    return lambda: ops.add([1.0, 2.0], x)


def _add(backend: str) -> Callable[[], Any]:
    x = ops.ones(2)
    return lambda: ops.add(x, x)


WALKS = {
    "add": (_add, ("torch",)),
    "list + tensor": (_mixed, ("torch",)),
    "layer_normalization": (_normalization, ("torch",)),
    "stft": (_stft, ("torch",)),
    "grad(sum(sin(x) * x))": (_gradient, ("numpy",)),
    "Trainer.step, Linear + SGD": (_step, ("torch", "numpy", "mlx")),
}


def main() -> None:
    """Print calls / files / changes of file of each walk."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--list", help="print the calls of this walk", default="")
    listed = parser.parse_args().list
    print(f"{'walk':32} {'backend':8} calls files changes")
    for name, (make, backends) in WALKS.items():
        for backend in backends:
            if backend not in ember_ml.backend.installed_backends():
                continue
            ember_ml.set_backend(backend)
            job = make(backend)
            for _ in range(3):  # what is made at the first call
                job()
            calls = walk(job)
            files = [file for file, _ in calls if not file.startswith("<")]
            changes = sum(a != b for (a, _), (b, _) in pairwise(calls))
            print(f"{name:32} {backend:8} {len(calls):5} {len(set(files)):5} {changes:7}")
            if listed and listed in name:
                print("\n".join(f"    {file} {function}" for file, function in calls))


if __name__ == "__main__":
    main()
