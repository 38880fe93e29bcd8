"""What the processes of the tests on a GPU run: each job gives plain data, which the test compares."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from ember_ml import distributed, ops
from ember_ml.backend.processes.group import Place
from ember_ml.backend.torch import processes
from tests.distributed import jobs
from tests.distributed.ranks import free_port

_DTYPES = (torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8, torch.uint16, torch.float16, torch.bfloat16)
_WIDE = (torch.float32, torch.float64, torch.complex64)


def collectives_of_one() -> dict[str, Any]:
    """Every collective of a group of one over NCCL, which gives back what it gets; the names of those that do not."""
    group = processes.connect(Place(coordinator=f"127.0.0.1:{free_port()}"))
    wrong: list[str] = []
    for dtype in (*_DTYPES, *_WIDE):
        x = torch.arange(12, device="cuda").reshape(4, 3).to(dtype)
        found = {
            "all_reduce": group.begin_all_reduce(x, "sum")(),
            "all_gather": group.all_gather(x),
            "reduce_scatter": group.begin_reduce_scatter(x)(),
            "all_to_all": group.begin_all_to_all(x)(),
            "broadcast": group.begin_broadcast(x, 0)(),
            "strided": group.all_gather(x.T).T,
        }
        wrong += [f"{name} of {dtype}" for name, y in found.items() if not (y.is_cuda and torch.equal(x, y))]
    few = [torch.full((3, 2), float(i), device="cuda") for i in range(5)]
    large = [torch.ones(3_000_000, device="cuda"), *few]
    for weight in (None, 2.5):
        means = group.mean(large, weight)
        wrong += [f"mean by {weight}" for x, y in zip(large, means, strict=True) if not torch.equal(x, y)]
    part = group.subgroup([[0]])
    wrong += [] if torch.equal(part.begin_all_reduce(few[1], "max")(), few[1]) else ["subgroup"]
    group.barrier()
    engine = group.engine
    group.close()
    return {"engine": engine, "wrong": wrong, "is open": dist.is_initialized()}


def strategies_of_two() -> dict[str, Any]:
    """Two processes that share one GPU, over a group of gloo that the program made: training with each strategy."""
    address = f"tcp://127.0.0.1:{os.environ['MASTER_PORT']}"
    dist.init_process_group("gloo", init_method=address, rank=int(os.environ["EMBER_ML_RANK"]), world_size=2)
    ops.set_default_device("cuda")
    found: dict[str, Any] = {strategy: jobs.train(strategy, last=20) for strategy in jobs.STRATEGIES}
    found["devices"] = sorted({str(ops.get_device(x)) for x in jobs.model_and_data()[0].state_dict().values()})
    dist.destroy_process_group()
    return found


def more_ranks_than_gpus() -> str:
    """What a process is told whose machine has no GPU left for it."""
    try:
        processes.connect(Place(1, torch.cuda.device_count() + 1, torch.cuda.device_count()))
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "joined"


if __name__ == "__main__":
    name, folder, given = sys.argv[1:]
    result = globals()[name](**json.loads(given))
    (Path(folder) / f"{distributed.rank()}.json").write_text(json.dumps(result))
