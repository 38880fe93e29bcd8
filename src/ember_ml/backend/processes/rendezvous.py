"""Let processes that another program started find each other, by that program's own means."""

from __future__ import annotations

import importlib.util
import os
import socket
import sys
from dataclasses import replace
from datetime import timedelta
from functools import cache
from typing import Any

from ember_ml.backend.processes.group import Place, address_of
from ember_ml.errors import LaunchError

__all__ = ["agreed_address", "all_addresses", "is_mpi_here", "mpi", "own_host"]

_MPI_VARIABLES = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK", "MPI_LOCALNRANKS")


def is_mpi_here() -> bool:
    """Whether MPI started this process, and can be used from it."""
    return any(name in os.environ for name in _MPI_VARIABLES) and importlib.util.find_spec("mpi4py") is not None


@cache
def mpi() -> Any:
    """Import and return ``mpi4py.MPI``, which joins the other processes.

    From then on an uncaught exception ends them all: otherwise this process would wait at its end for the others, which
    wait for it.
    """
    from mpi4py import MPI

    before = sys.excepthook

    def hook(*error: Any) -> None:
        before(*error)
        sys.stderr.flush()
        MPI.COMM_WORLD.Abort(1)

    sys.excepthook = hook
    return MPI


def agreed_address(place: Place) -> Place:
    """Return the place with an address at which its processes can meet: its own, or one that rank 0 offers."""
    if place.coordinator is not None or place.world_size == 1:
        return place if place.coordinator is not None else replace(place, coordinator=f"127.0.0.1:{_free_port()}")
    return replace(place, coordinator=_exchange(place, _own_address())[0])


def all_addresses(place: Place) -> list[str]:
    """Return an address for each rank, at which it can listen."""
    return _exchange(place, _own_address())


def _exchange(place: Place, text: str) -> list[str]:
    """Exchange texts among all ranks, by means of what started them."""
    if place.world_size == 1:
        return [text]
    if is_mpi_here():
        return mpi().COMM_WORLD.allgather(text)
    if place.started_by == "torchrun":
        return _exchange_by_store(place, text)
    raise LaunchError(
        f"the {place.world_size} processes that {place.started_by} started do not know each other's addresses: start "
        "the program with `ember-ml launch`, which tells them"
    )


def _exchange_by_store(place: Place, text: str) -> list[str]:
    """Exchange texts among all ranks through torchrun's store."""
    from torch.distributed import TCPStore  # pyright: ignore[reportPrivateImportUsage]

    host, port = address_of(place, place.started_by)
    store = TCPStore(host, port, is_master=False, timeout=timedelta(seconds=place.timeout))
    # the store outlives a restart, and has the addresses of ranks that died
    prefix = f"ember_ml/{os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}"
    store.set(f"{prefix}/{place.rank}", text)
    return [store.get(f"{prefix}/{rank}").decode() for rank in range(place.world_size)]


def _own_address() -> str:
    return f"{own_host()}:{_free_port()}"


def own_host(peer: str = "192.0.2.1") -> str:
    """Return the address under which ``peer`` reaches this machine; the local one where there is no way to it.

    Without a peer it is that for other machines.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((peer, 9))  # it selects the interface and sends nothing; the default is a reserved address
        except OSError:
            return "127.0.0.1"
        return probe.getsockname()[0]


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("", 0))
        return listener.getsockname()[1]
