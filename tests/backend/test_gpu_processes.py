"""Processes on a GPU: NCCL with a group of one, and two processes that share the GPU over gloo.

NCCL needs a GPU for each process, so one GPU shows its calls and not what they cost between several.
"""

from __future__ import annotations

from typing import Any

import pytest

from ember_ml import ops, use_backend
from tests.distributed.comparing import check_equal
from tests.distributed.jobs import STRATEGIES, train
from tests.distributed.ranks import run_ranks

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU of NVIDIA's")


def job(name: str, **given: Any) -> Any:
    return run_ranks(name, "torch", 1, module="tests.backend.gpu_jobs", **given)[0]


def test_nccl_computes_every_collective_on_every_dtype() -> None:
    found = job("collectives_of_one")
    assert "nccl" in found["engine"]
    assert found["wrong"] == []
    assert not found["is open"]


def test_a_rank_without_a_gpu_is_told() -> None:
    said = job("more_ranks_than_gpus")
    assert said.startswith("DeviceError")
    assert "one process for each GPU" in said


def test_two_processes_that_share_a_gpu_train_as_one_does() -> None:
    ranks = run_ranks("strategies_of_two", "torch", 2, module="tests.backend.gpu_jobs")
    with use_backend("torch"), ops.use_device("cuda"):
        alone = train("SingleProcess", last=20)
    for strategy in STRATEGIES:
        check_equal([rank[strategy] for rank in ranks], alone)
    assert [rank["devices"] for rank in ranks] == [["cuda:0"]] * 2
