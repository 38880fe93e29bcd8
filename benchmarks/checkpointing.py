"""What gradient checkpointing saves in memory and costs in time: 32 layers of 256, batch 4096, on every backend.

Each figure comes from a process of its own: the peak of its resident memory during one step, above what it held before.
Freed memory goes back to the system at once there (MALLOC_MMAP_THRESHOLD_), so that the peak is that of living arrays.

    python benchmarks/checkpointing.py [--batch 4096]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import ember_ml
from ember_ml import memory, ops
from ember_ml.backend import installed_backends

LAYERS, WIDTH = 32, 256


def resident(field: str) -> int:
    """Bytes from the process's status: VmRSS now, VmHWM at the peak."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"{field} is not in /proc/self/status")


def loss(weights: list, x: object, checkpointing: memory.GradientCheckpointing) -> object:
    """Return the loss of a chain of layers."""
    layers = [lambda h, w=w: h + ops.gelu(ops.tanh(ops.matmul(h, w))) for w in weights]
    return ops.mean(ops.square(checkpointing.chain(layers, x)))


def measure(backend: str, enabled: bool, batch: int) -> dict[str, float]:
    """Return one step in this process."""
    ember_ml.set_backend(backend)
    weights = [ops.random_normal((WIDTH, WIDTH), stddev=WIDTH**-0.5, seed=layer) for layer in range(LAYERS)]
    checkpointing = memory.GradientCheckpointing(enabled)
    step = ops.value_and_grad(loss)

    def run(size: int) -> float:
        value, gradients = step(weights, ops.random_normal((size, WIDTH), seed=99), checkpointing)
        return float(ops.item(value) + sum(ops.item(ops.sum(ops.abs(g))) for g in gradients))

    run(16)  # libraries load and compile at their first step
    before = resident("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts again from here
    start = time.perf_counter()
    result = run(batch)
    return {"seconds": time.perf_counter() - start, "bytes": resident("VmHWM") - before, "result": result}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=int, default=4096)
    parser.add_argument("--one", nargs=2, metavar=("BACKEND", "ENABLED"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(options.one[0], options.one[1] == "True", options.batch)))
        return
    print(f"{'backend':8} {'plain MB':>9} {'checkpointed MB':>16} {'memory':>7} {'time':>6}")
    for backend in installed_backends():
        found = []
        for enabled in (False, True):
            command = [sys.executable, __file__, "--batch", str(options.batch), "--one", backend, str(enabled)]
            environment = os.environ | {"MALLOC_MMAP_THRESHOLD_": "65536"}
            done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
            found.append(json.loads(done.stdout))
        plain, saved = found
        assert abs(plain["result"] - saved["result"]) <= 1e-5 * abs(plain["result"]), found
        sizes = plain["bytes"] / 1e6, saved["bytes"] / 1e6
        ratio, slower = sizes[1] / sizes[0], saved["seconds"] / plain["seconds"]
        print(f"{backend:8} {sizes[0]:9.0f} {sizes[1]:16.0f} {ratio:7.2f} {slower:6.2f}", flush=True)


if __name__ == "__main__":
    main()
