"""Process groups on MLX: a ring of TCP connections, or MPI where MLX was built with it."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import mlx.core as mx

from ember_ml.backend import selection as backends
from ember_ml.backend.processes.group import Bridge, Group, Place, Wait, buckets_of
from ember_ml.backend.processes.rendezvous import all_addresses, offer_addresses
from ember_ml.errors import UnsupportedOp

__all__ = ["connect", "joined"]

# sizes of messages; the ring is slower than gloo and has less latency to save
_FIRST_BYTES, _BYTES = 2**17, 2**22
_WORDS = {1: mx.uint8, 2: mx.uint16, 4: mx.uint32, 8: mx.uint64}


def connect(place: Place) -> MLXGroup:
    engine = "mpi" if place.started_by == "mpirun" and mx.distributed.is_available("mpi") else "ring"
    written = _write_hosts(place) if engine == "ring" and "MLX_HOSTFILE" not in os.environ else None
    try:
        group = mx.distributed.init(strict=True, backend=engine)
    finally:
        if written is not None:  # MLX 0.32 reads it while it joins the ring, and not again
            os.unlink(written)
    return MLXGroup(engine, group, place)


def joined() -> tuple[int, int] | None:
    return None  # MLX 0.32 does not say whether a program has joined a group


def _write_hosts(place: Place) -> str:
    """Write the file from which MLX reads where the ranks listen; return its path."""
    addresses = [[address] for address in all_addresses(place)]
    with tempfile.NamedTemporaryFile("w", suffix=".json", delete=False, encoding="utf-8") as file:
        json.dump(addresses, file)
    os.environ["MLX_HOSTFILE"], os.environ["MLX_RANK"] = file.name, str(place.rank)
    return file.name


class MLXGroup(Group):
    """A group of ``mlx.core.distributed``."""

    is_lazy = True

    def __init__(self, engine: str, group: Any, place: Place) -> None:
        super().__init__(engine, group.rank(), group.size())
        self._group, self._place = group, place
        self._host: Group | None = None
        self._is_under_way = False

    def under_way(self, begin: Callable[[], Wait]) -> Wait:
        self._is_under_way = True
        try:
            return begin()
        finally:
            self._is_under_way = False

    def _begin(self, x: mx.array) -> Wait:
        if self._is_under_way:  # MLX 0.32: refused inside of a gradient, where a result is waited for at once
            mx.async_eval(x)
        return lambda: _evaluate(x)

    def subgroup(self, members: Sequence[Sequence[int]]) -> Group:
        # MLX 0.32: a process can be in one ring only; MPI or gloo, through the host's memory, connect some of the ranks
        numpy = backends.load("numpy")
        assert numpy.processes is not None
        if self._host is None:
            first = offer_addresses(lambda own: self.all_gather(mx.array(own, mx.uint8)).tolist())[0]
            self._host = numpy.processes.connect(replace(self._place, coordinator=first))
        return Bridge(self._host.subgroup(members), numpy, backends.load("mlx"))

    def begin_all_reduce(self, x: mx.array, how: str) -> Wait:
        return self._begin(getattr(mx.distributed, f"all_{how}")(x, group=self._group))

    def begin_all_gather(self, x: mx.array) -> Wait:
        return self._begin(mx.distributed.all_gather(x, group=self._group))

    def begin_broadcast(self, x: mx.array, source: int) -> Wait:
        # MLX 0.32: no broadcast; the bits of all other ranks are 0, which makes the sum exact
        bits = mx.view(mx.contiguous(x).reshape(-1), _WORDS.get(x.itemsize, mx.uint64))
        summed = mx.distributed.all_sum(bits if self.rank == source else mx.zeros_like(bits), group=self._group)
        return self._begin(mx.view(summed, x.dtype).reshape(x.shape))

    def send(self, x: mx.array, to: int) -> None:
        self._check_neighbour(to)
        mx.eval(mx.distributed.send(x, to, group=self._group))

    def receive(self, shape: tuple[int, ...], dtype: Any, source: int) -> mx.array:
        self._check_neighbour(source)
        return _evaluate(mx.distributed.recv(shape, dtype, source, group=self._group))

    def _check_neighbour(self, other: int) -> None:
        if self.engine == "ring" and (other - self.rank) % self.size not in (1, self.size - 1):
            raise UnsupportedOp(
                f"MLX's ring connects rank {self.rank} of {self.size} with {(self.rank - 1) % self.size} and "
                f"{(self.rank + 1) % self.size} only, not with {other}: pass it on from rank to rank, or use broadcast"
            )

    def mean(self, xs: Sequence[mx.array], weight: float | None) -> list[mx.array]:
        found: list[Any] = [None] * len(xs)
        summed: mx.array | None = None
        last = len(xs) - 1  # gradients of the last parameters are known first
        for places in buckets_of([x.dtype for x in xs[::-1]], [x.nbytes for x in xs[::-1]], _BYTES, _FIRST_BYTES):
            bucket = [last - place for place in places]
            parts = [xs[place].reshape(-1) for place in bucket]
            if weight is not None:
                parts.append(mx.ones(1, parts[0].dtype))
            flat = mx.concatenate(parts)
            # without samples the gradients are arbitrary
            flat = mx.zeros_like(flat) if weight == 0 else flat * (1.0 / self.size if weight is None else weight)
            if summed is not None:  # the same order on every rank, whatever else its graph holds
                flat = mx.depends(flat, summed)
            summed = mx.distributed.all_sum(flat, group=self._group)
            flat = summed if weight is None else summed / summed[-1]
            start = 0
            for place in bucket:
                end = start + xs[place].size
                found[place] = flat[start:end].reshape(xs[place].shape)
                start = end
        return found

    def finish(self, xs: Sequence[mx.array]) -> None:
        mx.eval(xs)

    def barrier(self) -> None:
        self.begin_all_reduce(mx.zeros(1), "sum")()

    def close(self) -> None:
        if self._host is not None:
            self._host.close()


def _evaluate(x: mx.array) -> mx.array:
    # MLX 0.32: after a rank is lost, an unevaluated array can be read as if it had been reduced
    mx.eval(x)
    return x
