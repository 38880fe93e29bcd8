"""Processes that compute together: what a backend's engine for that provides.

A backend that has one has a module ``processes`` with a function ``connect(place)``, which returns a :class:`Group`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

from ember_ml.errors import LaunchError, UnsupportedOp

__all__ = [
    "BUCKET_BYTES",
    "DEFAULT_TIMEOUT",
    "FIRST_BUCKET_BYTES",
    "Bridge",
    "Group",
    "Place",
    "Wait",
    "address_of",
    "buckets_of",
]

Wait = Callable[[], Any]
"""Waits for what has begun, and gives its result."""

DEFAULT_TIMEOUT = 300.0
BUCKET_BYTES = 25 * 2**20
"""Bytes of tensors per message: few messages, but some on their way while others are prepared."""
FIRST_BUCKET_BYTES = 2**20
"""Bytes of the first message where others are still being computed: small, to start early."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a process stands among those that compute together, as its environment says."""

    rank: int = 0
    world_size: int = 1
    local_rank: int = 0
    """The number among the processes of the same machine."""
    coordinator: str | None = None
    """``host:port`` at which the processes can meet; rank 0 is on that host."""
    timeout: float = DEFAULT_TIMEOUT
    """The timeout in seconds for a process that waits for another, where the engine has one."""
    started_by: str = "python"
    """Who started the process: ``ember-ml launch``, ``torchrun``, ``mpirun``, ``mlx.launch`` or ``python``."""


class Group:
    """Processes that exchange native tensors of one backend. Every process must make the same calls in the same order.

    Tensors that are reduced are of a dtype for numbers with at least 32 bits, or of 8 or 16 bits and integer. Results
    are final: on a lazy backend they are evaluated, so that a failure shows here and nowhere later. Those of ``mean``
    are when ``finish`` has been called with them, or with what was made of them.
    """

    engine: str
    rank: int
    size: int
    is_lazy: bool = False
    """Whether the results of ``mean`` must be finished."""

    def __init__(self, engine: str, rank: int, size: int) -> None:
        self.engine, self.rank, self.size = engine, rank, size

    def begin_all_reduce(self, x: Any, how: str) -> Wait:
        """Begin the sum, ``max`` or ``min`` over the ranks, element by element, as a new tensor."""
        raise NotImplementedError

    def begin_all_gather(self, x: Any) -> Wait:
        """Begin to join the tensors of all ranks, which have equal shapes, along the first axis."""
        raise NotImplementedError

    def begin_reduce_scatter(self, x: Any) -> Wait:
        """Begin this rank's part, along the first axis, of the sum over the ranks."""
        part, wait = x.shape[0] // self.size, self.begin_all_reduce(x, "sum")
        return lambda: wait()[self.rank * part : (self.rank + 1) * part]

    def begin_all_to_all(self, x: Any) -> Wait:
        """Begin to send the k-th of equal parts along the first axis to rank k; those that come are in their order."""
        shape, part, wait = x.shape, x.shape[0] // self.size, self.begin_all_gather(x)
        return lambda: wait().reshape((self.size, self.size, part, *shape[1:]))[:, self.rank].reshape(shape)

    def begin_broadcast(self, x: Any, source: int) -> Wait:
        """Begin to send the tensor of the rank ``source``; the others' say what shape and dtype it has."""
        raise NotImplementedError

    def under_way(self, begin: Callable[[], Wait]) -> Wait:
        """Return what ``begin`` gives; what it begins does not wait for being waited for, as on a lazy backend."""
        return begin()

    def all_gather(self, x: Any) -> Any:
        """Return the tensors of all ranks, which have equal shapes, joined along the first axis."""
        return self.begin_all_gather(x)()

    def send(self, x: Any, to: int) -> None:
        raise NotImplementedError

    def receive(self, shape: tuple[int, ...], dtype: Any, source: int) -> Any:
        """Return the tensor that the rank ``source`` sends; ``dtype`` is native."""
        raise NotImplementedError

    def mean(self, xs: Sequence[Any], weight: float | None) -> list[Any]:
        """Return the mean over the ranks of each of the floating-point tensors, many of which are sent together.

        With ``weight`` they are weighted by the ranks' weights, whose sum is sent with the tensors; those of weight 0
        are ignored.
        """
        raise NotImplementedError

    def finish(self, xs: Sequence[Any]) -> None:
        """Evaluate the tensors of a lazy backend."""

    def overlapping(self, weight: float | None) -> AbstractContextManager[Any]:
        """Open a block in which gradients are computed for a ``mean`` with the same weight afterwards."""
        return nullcontext()

    def barrier(self) -> None:
        """Return when every rank has called this."""
        raise NotImplementedError

    def subgroup(self, members: Sequence[Sequence[int]]) -> Group:
        """Return that of the groups of ranks, which have each rank once, that has this process in it.

        Its ranks are the places among ``members``, which ascend. Every process calls this with the same groups.
        """
        raise UnsupportedOp(f"the engine {self.engine} has no groups of some of its ranks")

    def close(self) -> None:
        """Leave the group."""


class Bridge(Group):
    """The group of another backend, for tensors that are transferred there and back through the host."""

    def __init__(self, inner: Group, theirs: Any, ours: Any) -> None:
        super().__init__(inner.engine, inner.rank, inner.size)
        self.inner, self._theirs, self._ours = inner, theirs, ours

    def _there(self, x: Any) -> Any:
        return self._theirs.from_host(self._ours.to_host(x), "cpu")

    def _back(self, x: Any) -> Any:
        return self._ours.from_host(self._theirs.to_host(x), None)

    def _back_when(self, wait: Wait) -> Wait:
        return lambda: self._back(wait())

    def begin_all_reduce(self, x: Any, how: str) -> Wait:
        return self._back_when(self.inner.begin_all_reduce(self._there(x), how))

    def begin_all_gather(self, x: Any) -> Wait:
        return self._back_when(self.inner.begin_all_gather(self._there(x)))

    def begin_reduce_scatter(self, x: Any) -> Wait:
        return self._back_when(self.inner.begin_reduce_scatter(self._there(x)))

    def begin_all_to_all(self, x: Any) -> Wait:
        return self._back_when(self.inner.begin_all_to_all(self._there(x)))

    def begin_broadcast(self, x: Any, source: int) -> Wait:
        return self._back_when(self.inner.begin_broadcast(self._there(x), source))

    def send(self, x: Any, to: int) -> None:
        self.inner.send(self._there(x), to)

    def receive(self, shape: tuple[int, ...], dtype: Any, source: int) -> Any:
        own = next(name for name, native in self._ours.dtypes.items() if native == dtype)
        return self._back(self.inner.receive(shape, self._theirs.dtypes[own], source))

    def subgroup(self, members: Sequence[Sequence[int]]) -> Group:
        return Bridge(self.inner.subgroup(members), self._theirs, self._ours)

    def mean(self, xs: Sequence[Any], weight: float | None) -> list[Any]:
        return [self._back(x) for x in self.inner.mean([self._there(x) for x in xs], weight)]

    def barrier(self) -> None:
        self.inner.barrier()

    def close(self) -> None:
        self.inner.close()


def buckets_of(
    kinds: Sequence[Hashable], sizes: Sequence[int], limit: int = BUCKET_BYTES, first: int | None = None
) -> list[list[int]]:
    """Group the indices of tensors of one kind into buckets, in order, each full when it has ``limit`` bytes.

    The ``first`` one may be full earlier: that pays where it is sent while the others are still being computed.

    >>> from ember_ml.backend.processes.group import buckets_of
    >>> buckets_of(["f", "f", "i", "f", "f"], [4, 4, 8, 4, 4], limit=8, first=4)
    [[0], [1, 3], [2], [4]]
    """
    open_ones: dict[Hashable, tuple[list[int], int]] = {}
    found: list[list[int]] = []
    for place, (kind, size) in enumerate(zip(kinds, sizes, strict=True)):
        bucket, room = open_ones.get(kind, ([], 0))
        if room <= 0:
            bucket, room = [], limit if found or first is None else first
            found.append(bucket)
        bucket.append(place)
        open_ones[kind] = bucket, room - size
    return found


def address_of(place: Place, engine: str) -> tuple[str, int]:
    """Host and port of the place's coordinator."""
    host, _, port = (place.coordinator or "").rpartition(":")
    if not host or not port.isdigit():
        raise LaunchError(
            f"{engine} needs an address at which {place.world_size} processes meet, and {place.started_by} gave "
            f"{place.coordinator!r}: set MASTER_ADDR and MASTER_PORT, or start the program with `ember-ml launch`"
        )
    return host, int(port)
