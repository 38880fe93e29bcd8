"""What full sharding saves and costs on PyTorch, beside its own ``fully_shard`` written by hand.

Layers of 1024 by 1024, Adam, one row a rank, so that memory and messages are all there is; each kind in processes of
its own. The memory is the peak of a process in two steps, above what it had before the model was made.

    python benchmarks/full_sharding.py [--ranks 4] [--layers 16]
"""

from __future__ import annotations

import argparse
import os
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch
import torch.distributed as dist

import ember_ml
from ember_ml import distributed, nn, ops
from ember_ml.distributed import strategy
from ember_ml.training import optimizers

WIDTH = 1024
Step = Callable[[], object]


def ours(layers: int, last: int) -> Step:
    """Return a step with ``FullShardStrategy``."""
    made = strategy.FullShardStrategy()
    model = nn.Sequential(*[nn.Linear(WIDTH, last, bias=False) for _ in range(layers)])
    optimizer, x = optimizers.Adam(), ops.ones((1, WIDTH))
    made.prepare(model, optimizer)
    gradients_of = nn.value_and_grad(model, lambda x: ops.mean(ops.square(model(x))))

    def step() -> None:
        _, gradients = gradients_of(x)
        made.apply(optimizer, model.trainable(), made.average(list(gradients.values())))

    return step


def by_hand(layers: int, last: int) -> Step:
    """Return a step with ``fully_shard`` of each layer and of the whole."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    model = torch.nn.Sequential(*[torch.nn.Linear(WIDTH, last, bias=False) for _ in range(layers)])
    for layer in [*model, model]:
        fully_shard(layer, mesh=mesh)
    optimizer, x = torch.optim.Adam(model.parameters()), torch.ones(1, WIDTH)

    def step() -> None:
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()

    return step


def measure(kind: str, layers: int) -> None:
    """Print the peak of memory over the parameters' and the milliseconds of a step, on rank 0."""
    ember_ml.set_backend("torch")
    distributed.initialize()
    make = {"ours": ours, "by hand": by_hand}[kind]
    make(1, 1)()  # so that all libraries are loaded
    _forget_peak()
    before = _peak()
    step = make(layers, WIDTH)
    _forget_peak()  # while the model was made, it was whole
    step()
    step()
    share = (_peak() - before) / (4 * 4 * layers * WIDTH * WIDTH)
    times = []
    for _ in range(10):
        dist.barrier()
        start = time.perf_counter()
        step()
        times.append((time.perf_counter() - start) * 1e3)
    if distributed.rank() == 0:
        print(f"{kind:8} {share:7.0%} {min(times):8.0f} {statistics.median(times):8.0f}", flush=True)


def _forget_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def _peak() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))


def main() -> None:
    """Measure both kinds twice, in turn."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--layers", type=int, default=16)
    parser.add_argument("--kind", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.kind:
        measure(given.kind, given.layers)
        return
    print(
        "memory: of parameters, gradients and Adam's state of the whole model; milliseconds of a step, best and middle"
    )
    for kind in ("by hand", "ours", "by hand", "ours"):
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            port = listener.getsockname()[1]
        own = {"EMBER_ML_BACKEND": "torch", "EMBER_ML_WORLD_SIZE": str(given.ranks), "MASTER_ADDR": "127.0.0.1"}
        # freed memory goes back to the system at once, so that the peak is that of what is used
        own |= {"MASTER_PORT": str(port), "EMBER_ML_TIMEOUT": "60", "MALLOC_MMAP_THRESHOLD_": "65536"}
        command = [sys.executable, __file__, "--kind", kind, "--layers", str(given.layers)]
        started = [
            subprocess.Popen(command, env={**os.environ, **own, "EMBER_ML_RANK": str(rank)})
            for rank in range(given.ranks)
        ]
        codes = [process.wait(300) for process in started]
        if any(codes):
            raise SystemExit("a rank failed")


if __name__ == "__main__":
    main()
