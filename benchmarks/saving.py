"""How long training is held up by a checkpoint of 500 MB, beside ``torch.save`` with fsync of the same tensors.

A model with Adam is trained; every few steps its state is saved, by ``torch.save`` and fsync to a new file that then
replaces the old one, by the trainer while it waits, and by the trainer in the background. The three take turns. What a
save costs is by how much longer the steps from one save to the next take than as many steps without any; the steps
between two saves take longer than the writing itself, so that the background one has time to end.

    python benchmarks/saving.py [--megabytes 500] [--rounds 3] [--folder FOLDER]
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch

import ember_ml
from ember_ml import nn, ops
from ember_ml.training import Trainer

WIDTH = 1024


def make(megabytes: int) -> Trainer:
    """Return a trainer whose parameters and Adam's state have so many megabytes."""
    layers = max(1, round(megabytes * 1e6 / (3 * 4 * WIDTH * WIDTH)))
    # normalized: otherwise numbers become so small after many layers that the processor takes 10 times as long
    blocks = [nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WIDTH, bias=False)) for _ in range(layers)]
    model = nn.Sequential(*blocks)
    return Trainer(model, "adam", progress=False)


def save_by_torch(trainer: Trainer, folder: Path) -> None:
    """Write the state as a program by hand would: to a new file, synced, that replaces the old one."""
    state = {"model": trainer.model.state_dict(), "optimizer": trainer.optimizer.state_dict()}
    with (folder / "new.pt").open("wb") as file:
        torch.save(state, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(folder / "new.pt", folder / "state.pt")


def measure(trainer: Trainer, batch: object, seconds: float, save: Callable[[], None]) -> tuple[float, float, int]:
    """Return the seconds of a save's call, those of the steps that follow it, and how many these are."""
    start = time.perf_counter()
    save()
    saved = time.perf_counter()
    count = 0
    while time.perf_counter() - saved < seconds or count < 2:
        trainer.step(batch)
        count += 1
    return saved - start, time.perf_counter() - saved, count


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rows", type=int, default=64)
    parser.add_argument("--folder", default=None, help="on the disk to measure; by default where temporary files are")
    options = parser.parse_args()
    ember_ml.set_backend("torch")
    folder = Path(tempfile.mkdtemp(dir=options.folder))
    trainer = make(options.megabytes)
    batch = ops.ones((options.rows, WIDTH)), ops.zeros((options.rows, WIDTH))
    for _ in range(3):
        trainer.step(batch)
    trainer.save(folder / "background", wait=False)  # its buffers are made once
    trainer.finish_saving()
    start = time.perf_counter()
    save_by_torch(trainer, folder)
    pause = 1.5 * (time.perf_counter() - start)
    ways = {
        "nothing": lambda: None,
        "torch.save, fsync": lambda: save_by_torch(trainer, folder),
        "waiting": lambda: trainer.save(folder / "waiting"),
        "background": lambda: trainer.save(folder / "background", wait=False),
    }
    found: dict[str, list[tuple[float, float, int]]] = {name: [] for name in ways}
    for _ in range(options.rounds):
        for name, save in ways.items():
            found[name].append(measure(trainer, batch, pause, save))
            begun = time.perf_counter()
            trainer.finish_saving()
            print(f"{name}: {found[name][-1]}, then {time.perf_counter() - begun:.3f} s", file=sys.stderr, flush=True)
    shutil.rmtree(folder)
    step = statistics.median(after / count for _, after, count in found["nothing"])
    costs = {
        name: statistics.median(call + max(0.0, after - count * step) for call, after, count in rounds)
        for name, rounds in found.items()
    }
    print(f"{options.megabytes} MB, a step of {1e3 * step:.0f} ms, {pause:.1f} s of steps after each save")
    print(f"{'':20} {'call':>8} {'held up':>8} {'ratio':>6}")
    for name, rounds in found.items():
        call = statistics.median(seconds for seconds, _, _ in rounds)
        print(f"{name:20} {call:7.3f}s {costs[name]:7.3f}s {costs[name] / costs['torch.save, fsync']:6.2f}")


if __name__ == "__main__":
    main()
