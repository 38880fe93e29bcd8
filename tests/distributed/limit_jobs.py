"""What ranks do whose memory the system limits to less than the model needs."""

from __future__ import annotations

import gc
import json
import resource
import sys
from pathlib import Path
from typing import Any

from ember_ml import distributed, nn, ops
from ember_ml.distributed import strategy as strategies
from ember_ml.training import Trainer, optimizers

WIDTH, RATIO = 1024, 3


def data() -> tuple[Any, Any]:
    x = ops.sin(ops.reshape(ops.arange(8.0 * WIDTH), (8, WIDTH)))
    return x, ops.cos(x)


def build(layers: int) -> nn.Module:
    return nn.Sequential(*[nn.Linear(WIDTH, WIDTH, bias=False, initializer="glorot_uniform") for _ in range(layers)])


def make(layers: int, strategy: str, is_empty: bool = False) -> Trainer:
    ops.random.seed(7)
    with nn.empty() if is_empty else nn.deferred():
        model = build(layers)
    return Trainer(model, optimizers.SGD(1e-4), strategy=getattr(strategies, strategy)(), progress=False, seed=1)


def limit(size: int) -> None:
    """Let the process have ``size`` more bytes of memory than it has now: its data, which the system counts."""
    lines = Path("/proc/self/status").read_text().splitlines()
    used = 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmData:"))
    resource.setrlimit(resource.RLIMIT_DATA, (used + size, used + size))


def train(strategy: str, folder: str, layers: int, is_limited: bool) -> dict[str, Any]:
    """Losses of two steps, a checkpoint, and a step of another trainer that goes on from it."""
    first = make(1, strategy)
    first.fit(*data(), batch_size=8)  # so that all libraries are loaded, and the processes joined
    first.save(Path(folder) / "first")
    if is_limited:
        limit(4 * WIDTH * WIDTH * layers // RATIO)
    try:
        made = make(layers, strategy)
        made.fit(*data(), epochs=2, batch_size=8)
        made.save(Path(folder) / "second")
        losses = list(made.history["loss"])
        del made
        gc.collect()  # it refers to itself
        again = make(layers, strategy, is_empty=True).restore(Path(folder) / "second")
        again.fit(*data(), epochs=3, batch_size=8)
    except (MemoryError, RuntimeError) as error:
        return {"error": str(error)}
    return {"losses": [*losses, again.history["loss"][-1]]}


if __name__ == "__main__":
    name, folder, given = sys.argv[1:]
    result = globals()[name](**json.loads(given))
    (Path(folder) / f"{distributed.rank()}.json").write_text(json.dumps(result))
