"""Let processes that another program started find each other, by that program's own means."""

from __future__ import annotations

import importlib.util
import os
import secrets
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from functools import cache
from typing import Any

from ember_ml.backend.processes.group import Place, address_of
from ember_ml.backend.processes.meeting import Meeting, exchange_lines, slurm_meeting
from ember_ml.errors import LaunchError

__all__ = [
    "agreed_address",
    "all_addresses",
    "is_mpi_here",
    "meet_by_store",
    "mpi",
    "offer_addresses",
    "own_address",
    "own_host",
]

_ANYWHERE = "192.0.2.1"  # a reserved address, to which nothing is sent
_START = "ember_ml/start"  # the key of torchrun's store under which rank 0 names the present start
_MPI_VARIABLES = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MPI_LOCALNRANKS")


def is_mpi_here() -> bool:
    """Whether MPI started this process, and can be used from it."""
    if importlib.util.find_spec("mpi4py") is None:
        return False
    return any(name in os.environ for name in _MPI_VARIABLES) or ("PMIX_RANK" in os.environ and _is_pmix_known())


def _is_pmix_known() -> bool:
    """Whether the library of MPI can be started by PMIx, as by ``srun --mpi=pmix``."""
    # MPICH 5.0 ends the process where it is not told to use PMIx, or was built without it
    return _library().get_vendor()[0] != "MPICH" or os.environ.get("MPIR_CVAR_PMI_VERSION") == "x"


def _library() -> Any:
    """Import and return ``mpi4py.MPI``, which has not joined the other processes yet."""
    import mpi4py

    if "mpi4py.MPI" not in sys.modules:
        mpi4py.rc.initialize, mpi4py.rc.finalize = False, True
    from mpi4py import MPI

    return MPI


@cache
def mpi() -> Any:
    """Return ``mpi4py.MPI``, which has joined the other processes.

    From then on an uncaught exception ends them all: otherwise this process would wait at its end for the others, which
    wait for it.
    """
    MPI = _library()
    if not MPI.Is_initialized():
        MPI.Init_thread(MPI.THREAD_MULTIPLE)
    before = sys.excepthook

    def hook(*error: Any) -> None:
        before(*error)
        sys.stderr.flush()
        MPI.COMM_WORLD.Abort(1)

    sys.excepthook = hook
    return MPI


def agreed_address(place: Place) -> Place:
    """Return the place with an address at which its processes can meet: its own, or one that rank 0 offers.

    That of torchrun is taken by its store.
    """
    if place.coordinator is not None and "TORCHELASTIC_RUN_ID" not in os.environ:
        return place
    return replace(place, coordinator=all_addresses(place)[0])


def all_addresses(place: Place) -> list[str]:
    """Return an address for each rank, at which it can listen; they are exchanged by means of what started them."""
    if place.world_size == 1:
        return [own_address()]
    if place.started_by == "mpirun" and is_mpi_here():
        return mpi().COMM_WORLD.allgather(own_address())
    if "TORCHELASTIC_RUN_ID" in os.environ:
        return meet_by_store(place, own_address())[1]
    if place.coordinator is not None:
        host, port = address_of(place, place.started_by)
        meeting = Meeting(host, [port], "all")
    else:
        meeting = slurm_meeting(os.environ, place)
    if meeting is not None:
        return exchange_lines(meeting, place, own_address(meeting.host))
    raise LaunchError(
        f"the {place.world_size} processes that {place.started_by} started do not know each other's addresses: start "
        "the program with `ember-ml launch`, which tells them"
    )


def offer_addresses(gather: Callable[[list[int]], list[int]]) -> list[str]:
    """Return an address for each rank as above, exchanged by ``gather``, which joins the bytes of all ranks."""
    width = 80
    own = own_address().encode().ljust(width)
    found = bytes(gather([*own]))
    return [found[start : start + width].decode().strip() for start in range(0, len(found), width)]


def meet_by_store(place: Place, text: str = "") -> tuple[Any, list[str]]:
    """Return torchrun's store, without what former starts of the ranks have written, and the texts of all ranks.

    The store outlives a restart, and nothing tells the ranks of several machines how often they were started. So each
    start has a name of its own, which rank 0 chooses. A rank that finds that of a former start is not among those who
    have met under it, and looks again.
    """
    from torch.distributed import PrefixStore, TCPStore  # pyright: ignore[reportPrivateImportUsage]

    host, port = address_of(place, place.started_by)
    store = TCPStore(host, port, is_master=False, timeout=timedelta(seconds=place.timeout))
    own = f"{secrets.token_hex(8)} {text}"
    if place.rank == 0:
        name = secrets.token_hex(8)
        store.set(_START, name)
        here = PrefixStore(name, store)
        lines = [own, *(here.get(str(rank)).decode() for rank in range(1, place.world_size))]
        here.set("all", "\n".join(lines))
        return here, [line.partition(" ")[2] for line in lines]
    name, here, until, pause = "", PrefixStore("", store), time.monotonic() + place.timeout, 0.01
    while time.monotonic() < until:
        found = store.get(_START).decode()
        # looked at after the name: rank 0 may have gone on to another meeting, but not before it told who was here
        lines = here.get("all").decode().split("\n") if name and here.check(["all"]) else []
        if own in lines:
            return here, [line.partition(" ")[2] for line in lines]
        if found != name:
            name, here = found, PrefixStore(found, store)
            here.set(str(place.rank), own)
        time.sleep(pause)
        pause = min(1.0, 1.5 * pause)
    raise LaunchError(
        f"rank {place.rank} of {place.world_size} did not meet the others at torchrun's store within "
        f"{place.timeout:g} s: not all have come there"
    )


def own_address(peer: str = _ANYWHERE) -> str:
    """Return an address at which this process can listen, and ``peer`` reaches it, as :func:`own_host` says."""
    return f"{own_host(peer)}:{_free_port()}"


def own_host(peer: str = _ANYWHERE) -> str:
    """Return the address under which ``peer`` reaches this machine; the local one where there is no way to it.

    Without a peer it is that for other machines.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((peer, 9))  # it selects the interface and sends nothing
        except OSError:
            return "127.0.0.1"
        return probe.getsockname()[0]


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("", 0))
        return listener.getsockname()[1]
