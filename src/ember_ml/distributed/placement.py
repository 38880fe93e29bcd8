"""Find the place of this process among those that compute together, as its environment says."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import NamedTuple

from ember_ml.backend.processes.group import DEFAULT_TIMEOUT, Place
from ember_ml.errors import ConfigError

__all__ = ["place_of"]

TIMEOUT = "EMBER_ML_TIMEOUT"
COORDINATOR = "EMBER_ML_COORDINATOR"


class _Starter(NamedTuple):
    """A program that starts processes, and the variables in which it tells them their places."""

    name: str
    rank: str
    size: str
    local_rank: str


_STARTERS = (
    _Starter("ember-ml launch", "EMBER_ML_RANK", "EMBER_ML_WORLD_SIZE", "EMBER_ML_LOCAL_RANK"),
    _Starter("torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK"),
    _Starter("mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"),
    _Starter("mpirun", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"),
    # of a step alone: a batch script, which is one process, has SLURM_NTASKS too
    _Starter("srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID"),
)
_HALF_KNOWN = ("PMIX_RANK", "PALS_RANKID", "MLX_RANK")
"""Variables of other starters, which tell the rank and not how many processes there are."""


def place_of(variables: Mapping[str, str] = os.environ) -> Place:
    """The place that the environment variables tell: of ``ember-ml launch``, torchrun, mpirun, srun or mlx.launch.

    Without any of them the process is the only one. Variables that contradict each other raise ``ConfigError``.

    >>> from ember_ml.distributed.placement import place_of
    >>> place_of({"RANK": "1", "WORLD_SIZE": "4", "LOCAL_RANK": "1"}).world_size
    4
    """
    for starter in _STARTERS:
        if starter.rank in variables and starter.size in variables:
            rank, size = _number(variables, starter.rank), _number(variables, starter.size)
            local = (
                _number(variables, starter.local_rank)
                if starter.local_rank in variables
                else _guess_local(rank, size, variables)
            )
            return _check_place(
                Place(rank, size, local, _coordinator(variables), _timeout(variables), starter.name), variables
            )
    if "MLX_RANK" in variables and "MLX_HOSTFILE" in variables:
        rank = _number(variables, "MLX_RANK")
        addresses = _ring(variables["MLX_HOSTFILE"])
        host = addresses[rank].rpartition(":")[0] if rank < len(addresses) else ""
        local = sum(address.rpartition(":")[0] == host for address in addresses[:rank])
        meeting = _coordinator(variables) or addresses[0]
        return _check_place(Place(rank, len(addresses), local, meeting, _timeout(variables), "mlx.launch"), variables)
    if "EMBER_ML_WORLD_SIZE" in variables and _number(variables, "EMBER_ML_WORLD_SIZE") != 1:
        raise ConfigError(
            f"EMBER_ML_WORLD_SIZE asks for {variables['EMBER_ML_WORLD_SIZE']} processes, and nothing tells this one "
            "its rank: start the program with `ember-ml launch`, or set EMBER_ML_RANK"
        )
    strange = next((name for name in _HALF_KNOWN if name in variables), None)
    if strange is not None:
        raise ConfigError(
            f"the variable {strange} gives this process the rank {variables[strange]!r}, and nothing says of how many: "
            "start the program with `ember-ml launch`, or set EMBER_ML_RANK and EMBER_ML_WORLD_SIZE"
        )
    return Place(timeout=_timeout(variables))


def _guess_local(rank: int, size: int, variables: Mapping[str, str]) -> int:
    """Return the number on its machine of a process that its starter does not tell.

    Slurm does where it has started the processes of MPI. A pod of Kubernetes is a machine of its own.
    """
    told = [variables.get(name) for name in ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS")]
    if told == [str(rank), str(size)] and "SLURM_LOCALID" in variables:
        return _number(variables, "SLURM_LOCALID")
    return 0 if "KUBERNETES_SERVICE_HOST" in variables else rank


def _check_place(place: Place, variables: Mapping[str, str]) -> Place:
    wanted = variables.get("EMBER_ML_WORLD_SIZE", str(place.world_size))
    if not 0 <= place.rank < place.world_size or wanted != str(place.world_size):
        raise ConfigError(
            f"{place.started_by} says that this process has rank {place.rank} of {place.world_size}, and "
            f"{wanted} processes were asked for"
        )
    return place


def _number(variables: Mapping[str, str], name: str) -> int:
    text = variables[name]
    if not text.isdigit():
        raise ConfigError(f"the variable {name} is a number from 0 up, not {text!r}")
    return int(text)


def _timeout(variables: Mapping[str, str]) -> float:
    text = variables.get(TIMEOUT)
    try:
        seconds = float(text) if text else DEFAULT_TIMEOUT
    except ValueError:
        seconds = 0.0
    if not seconds > 0:
        raise ConfigError(f"the variable {TIMEOUT} is a number of seconds, not {text!r}")
    return seconds


def _coordinator(variables: Mapping[str, str]) -> str | None:
    # our own first: at PyTorch's, a program such as Ray may have made a group of its own already
    if COORDINATOR not in variables and "MASTER_ADDR" in variables and "MASTER_PORT" in variables:
        return f"{variables['MASTER_ADDR']}:{variables['MASTER_PORT']}"
    return variables.get(COORDINATOR)


def _ring(path: str) -> list[str]:
    """Return the first address of each rank, as MLX's host file has them."""
    try:
        with open(path, encoding="utf-8") as file:
            return [addresses[0] for addresses in json.load(file)]
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise ConfigError(f"the variable MLX_HOSTFILE names {path}, which is no list of addresses ({error})") from error
