"""Make the environment variables with which a rank is started: our own, and those of every engine."""

from __future__ import annotations

import json
import os
from typing import Any

from ember_ml.backend.built_in import BUILT_IN
from ember_ml.backend.selection import VARIABLE
from ember_ml.distributed.heartbeat import TIMEOUT, interval
from ember_ml.distributed.hosts import Host, address_of
from ember_ml.distributed.start_agents import Job

__all__ = ["ENGINE_SHARE", "LIMIT_SHARE", "order_of"]

ENGINE_SHARE = 0.7
"""The part of the time limit after which an engine that can gives up on its own, so that its ranks raise themselves."""
LIMIT_SHARE = 0.8
"""The part of the time limit after which the launcher gives a job up; the rest is for ending it."""

# glibc keeps large blocks instead of returning each to the system and having its pages cleared again: six operations on
# ten million floats on PyTorch take 26 ms instead of 132
_MALLOC = {"MALLOC_MMAP_THRESHOLD_": "2000000000", "MALLOC_TRIM_THRESHOLD_": "2000000000"}


def order_of(job: Job, coordinator: int, ports: dict[int, int], restart: int) -> dict[str, Any]:
    """What the agents are told to start: the coordinator's port is on the first host, the others are one per rank."""
    first = address_of(job.hosts[0].name)
    world = sum(len(host.ranks) for host in job.hosts)
    ring = world > 1 and job.backend in BUILT_IN and BUILT_IN[job.backend].started_by == "ring"
    environment = {
        "EMBER_ML_WORLD_SIZE": str(world),
        "EMBER_ML_COORDINATOR": f"{first}:{coordinator}",
        "EMBER_ML_RESTART": str(restart),
        TIMEOUT: str(round(job.timeout * ENGINE_SHARE, 3)),
        VARIABLE: job.backend,
        "WORLD_SIZE": str(world),
        "MASTER_ADDR": first,
        "MASTER_PORT": str(coordinator),
        "PYTHONUNBUFFERED": "1",
        **{name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ},
        **{name: value for name, value in _MALLOC.items() if name not in os.environ},
    }
    addresses = [[f"{address_of(host.name)}:{ports[rank]}"] for host in job.hosts for rank in host.ranks]
    return {
        "command": job.command,
        "folder": os.getcwd(),
        "environment": environment,
        "files": {"MLX_HOSTFILE": json.dumps(addresses)} if ring else {},
        "ranks": [_rank(rank, host, ring) for host in job.hosts for rank in host.ranks],
        "interval": interval(job.timeout * ENGINE_SHARE),
    }


def _rank(rank: int, host: Host, ring: bool) -> dict[str, Any]:
    local = str(rank - host.ranks.start)
    environment = {
        "EMBER_ML_RANK": str(rank),
        "EMBER_ML_LOCAL_RANK": local,
        "RANK": str(rank),
        "LOCAL_RANK": local,
        "LOCAL_WORLD_SIZE": str(len(host.ranks)),
    }
    return {
        "rank": rank,
        "address": address_of(host.name),
        "environment": {**environment, "MLX_RANK": str(rank)} if ring else environment,
    }
