"""Process groups on NumPy: over MPI if it started the processes, otherwise over gloo, which PyTorch has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ember_ml.backend import selection as backends
from ember_ml.backend.processes.group import Bridge, Group, Place, Wait, buckets_of
from ember_ml.backend.processes.rendezvous import is_mpi_here, mpi
from ember_ml.errors import LaunchError

__all__ = ["connect", "joined"]


def joined() -> tuple[int, int] | None:
    return None  # MPI joins all processes that it has started, and its variables say how many


def connect(place: Place) -> Group:
    if is_mpi_here():
        return MPIGroup()
    if backends.is_installed("torch"):
        torch = backends.load("torch")
        assert torch.processes is not None
        return Bridge(torch.processes.connect(place), torch, backends.load("numpy"))
    raise LaunchError(
        "NumPy has no engine for several processes of its own: pip install 'ember-ml[mpi]' and start the program with "
        "`ember-ml launch` or mpirun, or install PyTorch, whose engine serves NumPy as well"
    )


class MPIGroup(Group):
    """All processes that ``mpirun`` started, or those of another communicator of MPI."""

    def __init__(self, members: Any = None) -> None:
        self._mpi = mpi()
        self._world = self._mpi.COMM_WORLD if members is None else members
        super().__init__("mpi", self._world.Get_rank(), self._world.Get_size())

    def subgroup(self, members: Sequence[Sequence[int]]) -> MPIGroup:
        place = next(place for place, ranks in enumerate(members) if self.rank in ranks)
        return MPIGroup(self._world.Split(place, list(members[place]).index(self.rank)))

    def begin_all_reduce(self, x: np.ndarray, how: str) -> Wait:
        made = np.empty(x.shape, x.dtype)
        return _wait(self._world.Iallreduce(np.ascontiguousarray(x), made, getattr(self._mpi, how.upper())), made)

    def begin_all_gather(self, x: np.ndarray) -> Wait:
        joined = np.empty((self.size * x.shape[0], *x.shape[1:]) if x.ndim else (self.size,), x.dtype)
        return _wait(self._world.Iallgather(_bytes(x), _bytes(joined)), joined)

    def begin_reduce_scatter(self, x: np.ndarray) -> Wait:
        part = np.empty((x.shape[0] // self.size, *x.shape[1:]), x.dtype)
        return _wait(self._world.Ireduce_scatter_block(np.ascontiguousarray(x), part, self._mpi.SUM), part)

    def begin_all_to_all(self, x: np.ndarray) -> Wait:
        made = np.empty(x.shape, x.dtype)
        return _wait(self._world.Ialltoall(_bytes(x), _bytes(made)), made)

    def begin_broadcast(self, x: np.ndarray, source: int) -> Wait:
        work = x.copy(order="C")
        return _wait(self._world.Ibcast(_bytes(work), source), work)

    def send(self, x: np.ndarray, to: int) -> None:
        self._world.Send(_bytes(x), to)

    def receive(self, shape: tuple[int, ...], dtype: Any, source: int) -> np.ndarray:
        made = np.empty(shape, dtype)
        self._world.Recv(_bytes(made), source)
        return made

    def mean(self, xs: Sequence[np.ndarray], weight: float | None) -> list[np.ndarray]:
        found: list[Any] = [None] * len(xs)
        pending = [(bucket, *self._start_sum([xs[place] for place in bucket], weight)) for bucket in _buckets(xs)]
        for bucket, flat, work in pending:
            work.Wait()
            if weight is not None:
                flat = flat[:-1] / flat[-1]
            parts = np.split(flat, np.cumsum([xs[place].size for place in bucket])[:-1])
            for place, part in zip(bucket, parts, strict=True):
                found[place] = part.reshape(xs[place].shape)
        return found

    def _start_sum(self, xs: Sequence[np.ndarray], weight: float | None) -> tuple[np.ndarray, Any]:
        parts = [x.reshape(-1) for x in xs]
        if weight is not None:
            parts.append(np.ones(1, xs[0].dtype))
        flat = np.concatenate(parts)
        if weight == 0:  # without samples the gradients are arbitrary
            flat[...] = 0
        else:
            flat *= flat.dtype.type(1.0 / self.size if weight is None else weight)
        return flat, self._world.Iallreduce(self._mpi.IN_PLACE, flat, self._mpi.SUM)

    def barrier(self) -> None:
        self._world.Barrier()


def _wait(begun: Any, result: np.ndarray) -> Wait:
    """Return what waits for a request of MPI, which holds what is sent, and gives its result."""

    def wait() -> np.ndarray:
        begun.Wait()
        return result

    return wait


def _buckets(xs: Sequence[np.ndarray]) -> list[list[int]]:
    return buckets_of([x.dtype for x in xs], [x.nbytes for x in xs])


def _bytes(x: np.ndarray) -> np.ndarray:
    """Return the memory of ``x``, copied unless contiguous, as bytes: sending needs no dtype that MPI knows."""
    return np.ascontiguousarray(x).reshape(-1).view(np.uint8)
