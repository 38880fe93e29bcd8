"""Join the processes that compute together, and say which of them this one is."""

from __future__ import annotations

import atexit
import threading
from contextlib import suppress
from dataclasses import replace

from ember_ml.backend import selection as backends
from ember_ml.backend.built_in import HOST
from ember_ml.backend.contract import Backend
from ember_ml.backend.devices import set_default
from ember_ml.backend.processes.group import Bridge, Group, Place
from ember_ml.distributed import heartbeat
from ember_ml.distributed.placement import place_of
from ember_ml.errors import LaunchError

__all__ = ["Single", "group", "initialize", "is_initialized", "local_rank", "place", "rank", "shutdown", "world_size"]

_groups: dict[str, Group] = {}
_place: Place | None = None
_lock = threading.RLock()


def place() -> Place:
    """Where this process stands among all, as its environment says."""
    global _place
    if _place is None:
        _place = place_of()
    if _place.world_size == 1:
        processes = backends.active().processes
        joined = None if processes is None else processes.joined()
        if joined is not None and joined[1] > 1:  # a group that the program has made by itself
            _place = replace(
                _place, rank=joined[0], world_size=joined[1], local_rank=joined[0], started_by="the program"
            )
    return _place


def rank() -> int:
    """Return the number of this process among those that compute together, from 0; 0 in a program of one process."""
    return place().rank


def world_size() -> int:
    """Return how many processes compute together; 1 in a program of one process."""
    return place().world_size


def local_rank() -> int:
    """Return the number of this process among those on its machine."""
    return place().local_rank


def initialize(world_size: int | None = None, timeout: float | None = None) -> None:
    """Join the other processes over the engine of the active backend; once joined, nothing happens.

    Called by whatever needs it first. ``world_size`` is the number of processes that the program needs: another number
    is an error, so that a program meant for four does not run on one. ``timeout`` is the number of seconds after which
    a process that waits for another gives up, where the engine has time limits (gloo and NCCL of
    PyTorch; MPI, MLX's ring and JAX have none).
    """
    check_size(world_size)
    _join(timeout)


def check_size(wanted: int | None) -> None:
    """Raise where the program runs on another number of processes than it needs."""
    if wanted is not None and wanted != world_size():
        raise LaunchError(
            f"the program asks for {wanted} processes and runs on {world_size()}: start it with "
            f"`ember-ml launch -n {wanted} script.py`"
        )


def is_initialized() -> bool:
    """Return whether this process has joined the others over the active backend's engine."""
    return backends.active().key in _groups


def group() -> Group:
    """Return the group of the active backend's engine, joined at the first request."""
    return _groups.get(backends.active().key) or _join(None)


def _join(timeout: float | None) -> Group:
    backend = backends.active()
    with _lock:
        found = _groups.get(backend.key)
        if found is None:
            found = _groups[backend.key] = _connect(backend, timeout)
        return found


def _connect(backend: Backend, timeout: float | None) -> Group:
    here = place() if timeout is None else replace(place(), timeout=timeout)
    if here.world_size == 1:
        return Single("none", 0, 1)
    heartbeat.start()
    try:
        with heartbeat.waiting("initialize"):
            found = _engine_of(backend, here)
    except RuntimeError as error:
        if isinstance(error, LaunchError):
            raise
        raise LaunchError(
            f"rank {here.rank} of {here.world_size} could not join the others on {backend.name} ({error})"
        ) from error
    if (found.rank, found.size) != (here.rank, here.world_size):
        raise LaunchError(
            f"{here.started_by} started rank {here.rank} of {here.world_size}, and {found.engine} joined it as rank "
            f"{found.rank} of {found.size}"
        )
    if "nccl" in found.engine:
        set_default(backend, f"cuda:{here.local_rank}")
    atexit.register(_close, found)
    return found


def _engine_of(backend: Backend, here: Place) -> Group:
    if backend.processes is not None:
        return backend.processes.connect(here)
    with backends.use_backend(HOST):  # which moves the tensors of a backend without an engine of its own
        return Bridge(_join(None), backends.active(), backend)


def shutdown() -> None:
    """Leave the other processes. The program does so by itself at its end."""
    with _lock:
        while _groups:
            _close(_groups.popitem()[1])


def _close(found: Group) -> None:
    with suppress(RuntimeError):  # the others may be gone already
        found.close()


class Single(Group):
    """A program of one process: there is nobody to exchange anything with."""
