"""What a step of several processes costs beside the one that an expert writes by hand.

By hand on PyTorch: ``DistributedDataParallel``; with ``ZeroRedundancyOptimizer`` for ``--strategy zero``; with
``fully_shard`` of each block and of the whole for ``--strategy full``. On MLX: ``all_sum`` of each gradient.

The same model, the same optimizer (Adam), the same batch, in the same processes; steps of both kinds alternate, and the
best and the middle times of each are compared.

    python benchmarks/distributed.py [--ranks 2] [--seconds 20] [--backends torch mlx] [--model mlp] [--strategy data]
"""

from __future__ import annotations

import argparse
import json
import os
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

import ember_ml
from ember_ml import distributed, nn, ops
from ember_ml.distributed import collectives, strategy
from ember_ml.training import Trainer, optimizers

Step = Callable[[], Any]
MODELS = {
    "mlp": ((784, 1024, 1024, 10), 128, False),
    "small": ((784, 256, 256, 10), 32, False),
    "many": ((128,) * 25, 32, True),
    "wide": ((1024,) * 9, 128, True),
}
"""The widths of the layers, the batch of each rank, and whether each layer is normalized before; between, a ReLU."""
STRATEGIES = {
    "data": strategy.DataParallelStrategy,
    "zero": strategy.ZeroStrategy,
    "full": strategy.FullShardStrategy,
}
RATE = 1e-3


def data(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return this rank's part of a batch."""
    widths, batch, _ = MODELS[name]
    rng = np.random.default_rng(distributed.rank())
    return rng.normal(size=(batch, widths[0])).astype(np.float32), rng.integers(0, 10, batch)


def ours(name: str, kind: str) -> tuple[Step, Step]:
    """Return a step of gradients, average and update, and a step of the trainer, which also averages the loss."""
    x, y = (ops.asarray(part) for part in data(name))
    made, trainer = (
        Trainer(_model(name), optimizers.Adam(RATE), "sparse_categorical_crossentropy", strategy=STRATEGIES[kind]())
        for _ in range(2)
    )

    def step() -> Any:
        loss, _, _ = made._step((x, y))
        return loss

    return step, lambda: trainer.step((x, y))


def _model(name: str) -> nn.Module:
    widths, _, is_normalized = MODELS[name]
    ops.random.seed(0)
    blocks = []
    for place, (inputs, outputs) in enumerate(pairwise(widths)):
        parts: list[Any] = [nn.LayerNorm(inputs)] if is_normalized else []
        parts.append(nn.Linear(inputs, outputs))
        blocks.append(nn.Sequential(*parts, *[ops.relu] * (place < len(widths) - 2)))
    return nn.Sequential(*blocks)


def by_hand_torch(name: str, kind: str) -> Step:
    """Return a step with PyTorch's own means."""
    import torch

    widths, _, is_normalized = MODELS[name]
    torch.manual_seed(0)
    blocks = []
    for place, (inputs, outputs) in enumerate(pairwise(widths)):
        parts: list[Any] = [torch.nn.LayerNorm(inputs)] if is_normalized else []
        parts.append(torch.nn.Linear(inputs, outputs))
        blocks.append(torch.nn.Sequential(*parts, *[torch.nn.ReLU()] * (place < len(widths) - 2)))
    model: Any = torch.nn.Sequential(*blocks)
    if kind == "full":
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard

        mesh = init_device_mesh("cpu", (distributed.world_size(),))
        for block in [*model, model]:
            fully_shard(block, mesh=mesh)
        optimizer: Any = torch.optim.Adam(model.parameters(), RATE)
    else:
        model = torch.nn.parallel.DistributedDataParallel(model)
        if kind == "zero":
            from torch.distributed.optim import ZeroRedundancyOptimizer

            optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=RATE, fused=True)
        else:
            optimizer = torch.optim.Adam(model.parameters(), RATE, fused=True)
    x, y = (torch.from_numpy(part) for part in data(name))

    def step() -> Any:
        optimizer.zero_grad(set_to_none=True)
        loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def by_hand_mlx(name: str, kind: str) -> Step:
    """Return a step with a sum over the ranks of each gradient."""
    import mlx.core as mx
    import mlx.nn
    import mlx.optimizers
    from mlx.utils import tree_map

    widths, _, is_normalized = MODELS[name]
    if kind != "data":
        raise SystemExit("MLX has no other way by hand than to sum the gradients")
    layers: list[Any] = []
    for inputs, outputs in pairwise(widths):
        layers += [mlx.nn.LayerNorm(inputs)] * is_normalized + [mlx.nn.Linear(inputs, outputs), mlx.nn.ReLU()]
    model = mlx.nn.Sequential(*layers[:-1])
    optimizer = mlx.optimizers.Adam(RATE, bias_correction=True)
    x, y = (mx.array(part) for part in data(name))
    group = mx.distributed.init(strict=True, backend="ring")

    def loss_of(x: Any, y: Any) -> Any:
        return mlx.nn.losses.cross_entropy(model(x), y, reduction="mean")

    gradients_of = mlx.nn.value_and_grad(model, loss_of)

    def step() -> Any:
        loss, gradients = gradients_of(x, y)
        gradients = tree_map(lambda g: mx.distributed.all_sum(g, group=group) / group.size(), gradients)
        optimizer.update(model, gradients)
        mx.eval(loss, model.parameters(), optimizer.state)
        return loss

    return step


def measure(model: str, strategy_name: str, seconds: float) -> dict[str, list[tuple[float, float]]]:
    """Measure each kind of step in alternating rounds; return milliseconds of wall clock and of processor time."""
    step, trained = ours(model, strategy_name)
    hand = {"torch": by_hand_torch, "mlx": by_hand_mlx}[ember_ml.get_backend()](model, strategy_name)
    kinds = {"by hand": hand, "ours": step, "trainer": trained}
    times: dict[str, list[tuple[float, float]]] = {kind: [] for kind in kinds}
    for call in kinds.values():
        for _ in range(5):
            call()
    end = time.monotonic() + seconds
    is_over, order, generator = False, list(kinds), random.Random(0)  # the same orders on every rank
    while not is_over:
        generator.shuffle(order)  # each comes after each of the others equally often
        for name in order:
            call = kinds[name]
            collectives.barrier()
            start, busy = time.perf_counter(), time.process_time()
            call()
            times[name].append(((time.perf_counter() - start) * 1e3, (time.process_time() - busy) * 1e3))
        if len(times["ours"]) % 20:
            continue
        is_over = bool(ops.item(collectives.all_reduce(ops.asarray(time.monotonic() > end), "max")))
    return times


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def run(backend: str, ranks: int, seconds: float, model: str, kind: str) -> dict[str, list[tuple[float, float]]]:
    """Run the measurement on ``ranks`` processes; return the result of rank 0."""
    with tempfile.TemporaryDirectory() as folder:
        hosts = Path(folder) / "hosts.json"
        hosts.write_text(json.dumps([[f"127.0.0.1:{_free_port()}"] for _ in range(ranks)]))
        own = {"EMBER_ML_BACKEND": backend, "EMBER_ML_WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1"}
        own |= {"MASTER_PORT": str(_free_port()), "MLX_HOSTFILE": str(hosts), "EMBER_ML_TIMEOUT": "60"}
        command = [sys.executable, __file__, "--rank-of", folder, "--seconds", str(seconds), "--model", model]
        command += ["--strategy", kind]
        started = [
            subprocess.Popen(command, env={**os.environ, **own, "EMBER_ML_RANK": str(rank), "MLX_RANK": str(rank)})
            for rank in range(ranks)
        ]
        codes = [process.wait(seconds + 300) for process in started]
        if any(codes):
            raise SystemExit("a rank failed")
        return json.loads((Path(folder) / "0.json").read_text())


def main() -> None:
    """Measure on each backend, and print the comparison."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--backends", nargs="+", default=["torch", "mlx"])
    parser.add_argument("--model", choices=MODELS, default="mlp")
    parser.add_argument("--strategy", choices=STRATEGIES, default="data")
    parser.add_argument("--rank-of", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.rank_of:
        times = measure(given.model, given.strategy, given.seconds)
        (Path(given.rank_of) / f"{distributed.rank()}.json").write_text(json.dumps(times))
        return
    print(
        f"{given.model}, {given.strategy}, {given.ranks} processes; milliseconds of a step; on a busy machine the "
        "processor's tell more"
    )
    print(f"{'':16} {'best':>8} {'middle':>8} {'processor':>9} {'rounds':>7}")
    for backend in given.backends:
        times = run(backend, given.ranks, given.seconds, given.model, given.strategy)
        hand = _figures(times["by hand"])
        for kind, found in times.items():
            figures = _figures(found)
            print(f"{backend:7}{kind:9} {figures[0]:8.2f} {figures[1]:8.2f} {figures[2]:9.2f} {len(found):7}", end="")
            print("   " + "  ".join(f"{own / base:.3f}x" for own, base in zip(figures, hand, strict=True)), flush=True)


def _figures(times: list[tuple[float, float]]) -> tuple[float, float, float]:
    """Return the best and the middle time on the clock, and the middle time of the processor."""
    clock, busy = zip(*times, strict=True)
    return min(clock), statistics.median(clock), statistics.median(busy)


if __name__ == "__main__":
    main()
