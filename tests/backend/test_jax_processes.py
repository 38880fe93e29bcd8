"""A group that the program has made by ``jax.distributed`` is used as it is."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.distributed.ranks import ROOT, free_port

pytestmark = pytest.mark.long

PROGRAM = """
import sys
import jax
rank = int(sys.argv[1])
jax.distributed.initialize(sys.argv[2], 2, rank)
from ember_ml import distributed, ops
from ember_ml.distributed import collectives
x = ops.array([1.0 + rank, 2.0])
total = collectives.all_reduce(x)
assert (distributed.rank(), distributed.world_size()) == (rank, 2)
assert ops.to_numpy(total).tolist() == [3.0, 4.0]
assert ops.to_numpy(collectives.broadcast(x, 1)).tolist() == [2.0, 2.0]
assert ops.to_numpy(collectives.all_gather(x)).tolist() == [1.0, 2.0, 2.0, 2.0]
if rank:
    collectives.send(x, 0)
else:
    assert ops.to_numpy(collectives.recv((2,), "float32", 1)).tolist() == [2.0, 2.0]
"""


def test_two_processes_of_the_programs_own_group() -> None:
    pytest.importorskip("jax")
    kept = {name: value for name, value in os.environ.items() if not name.startswith("EMBER_ML_")}
    environment = kept | {"EMBER_ML_BACKEND": "jax", "PYTHONPATH": str(ROOT / "src")}
    address = f"127.0.0.1:{free_port()}"
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(rank), address],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in range(2)
    ]
    said = [process.communicate(timeout=120)[0] for process in ranks]
    assert [process.returncode for process in ranks] == [0, 0], said
