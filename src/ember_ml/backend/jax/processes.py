"""Process groups on JAX: programs over one device of each process, whose collectives XLA runs over gloo.

JAX joins processes before its first computation or never. A group must be joined when it is first needed, so it gets a
CPU client of its own, beside that of the other arrays. One that the program has made by ``jax.distributed.initialize``
before its first computation is used as it is, with the collectives of its devices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxlib import (  # JAX 0.10: jax itself has no names for a second client
    _jax,  # pyright: ignore[reportAttributeAccessIssue]
    xla_client,
)

from ember_ml.backend.processes.group import DEFAULT_TIMEOUT, Group, Place, Wait, address_of, buckets_of
from ember_ml.backend.processes.rendezvous import agreed_address, offer_addresses, own_host
from ember_ml.errors import UnsupportedOp

__all__ = ["connect", "joined"]

_RANKS = "ranks"
_SPLIT = PartitionSpec(_RANKS)


def _collective(native: Callable[..., jax.Array], **settings: Any) -> Callable[..., list[jax.Array]]:
    return lambda xs: [native(xs[0], _RANKS, **settings)]


_sum, _max, _min = map(_collective, (lax.psum, lax.pmax, lax.pmin))
_gather, _scatter = _collective(lax.all_gather, tiled=True), _collective(lax.psum_scatter, tiled=True)


def connect(place: Place) -> JAXGroup:
    """Return the group of all processes; an existing one of ``jax.distributed`` is reused."""
    if jax.distributed.is_initialized():
        firsts = {device.process_index: device for device in reversed(jax.devices())}
        devices = [firsts[rank] for rank in range(jax.process_count())]
        return JAXGroup("jax.distributed", jax.process_index(), devices)
    return _join_at(agreed_address(place))


def joined() -> tuple[int, int] | None:
    return (jax.process_index(), jax.process_count()) if jax.distributed.is_initialized() else None


def _join_at(place: Place) -> JAXGroup:
    """Return the group of the processes that meet at the coordinator of ``place``."""
    host, port = address_of(place, "jax.distributed")
    address, seconds = f"{host}:{port}", max(1, round(place.timeout))
    service = _jax.get_distributed_runtime_service(address, place.world_size) if place.rank == 0 else None
    client = _jax.get_distributed_runtime_client(
        address, place.rank, init_timeout=seconds, shutdown_on_destruction=False
    )
    client.connect()
    collectives = _jax.make_gloo_tcp_collectives(distributed_client=client, hostname=own_host(host))
    own = xla_client.make_cpu_client(
        distributed_client=client,
        node_id=place.rank,
        num_nodes=place.world_size,
        collectives=collectives,
        num_devices=1,
    )
    devices = sorted(own.devices(), key=lambda device: device.process_index)
    group = JAXGroup("gloo", place.rank, devices, place.timeout)
    group.meet()
    # JAX 0.10: its service ends all processes when it loses one, before they can say which; gloo does without it now.
    # The service goes last, when nobody needs it.
    if service is None:
        client.shutdown()
    group.barrier()
    if service is not None:
        client.shutdown()
        service.shutdown()
    return group


class JAXGroup(Group):
    """Processes with one device each, which run the same programs."""

    def __init__(self, engine: str, rank: int, devices: Sequence[Any], timeout: float = DEFAULT_TIMEOUT) -> None:
        super().__init__(engine, rank, len(devices))
        self._devices, self._timeout = devices, timeout
        self.ranks = _Ranks(devices, devices[rank])
        # gloo connects a pair while the processes join, or not at all
        neighbours = {(rank + step) % self.size for step in (-1, 1)}
        self._pairs = {
            other: _Ranks([devices[one] for one in sorted((rank, other))], devices[rank])
            for other in sorted(neighbours - {rank})
        }

    def meet(self) -> None:
        """Connect with all, and with each neighbour: in the same order everywhere, so that none waits in a circle."""
        self.barrier()
        for _, pair in sorted(self._pairs.items(), key=lambda item: sorted((self.rank, item[0]))):
            pair.run(_sum, jnp.zeros(1))
        self.barrier()

    def subgroup(self, members: Sequence[Sequence[int]]) -> JAXGroup:
        own = next(ranks for ranks in members if self.rank in ranks)
        rank = list(own).index(self.rank)
        # gloo connects processes while they join, so these join once more
        addresses = offer_addresses(lambda given: self.all_gather(jnp.array(given, jnp.uint8)).tolist())
        if self.engine != "gloo" or len(own) == 1:
            return JAXGroup(self.engine, rank, [self._devices[other] for other in own])
        return _join_at(Place(rank, len(own), coordinator=addresses[own[0]], timeout=self._timeout))

    def begin_all_reduce(self, x: jax.Array, how: str) -> Wait:
        return self.ranks.begin({"sum": _sum, "max": _max, "min": _min}[how], x)

    def begin_all_gather(self, x: jax.Array) -> Wait:
        return self.ranks.begin(_gather, x.reshape(1) if x.ndim == 0 else x)

    def begin_reduce_scatter(self, x: jax.Array) -> Wait:
        return self.ranks.begin(_scatter, x)

    def begin_broadcast(self, x: jax.Array, source: int) -> Wait:
        # JAX 0.10 on the CPU: no broadcast; the bits of all other ranks are 0, which makes the sum exact
        bits = _bits(x)
        wait = self.ranks.begin(_sum, bits if self.rank == source else jnp.zeros_like(bits))
        return lambda: _from_bits(wait(), x.shape, x.dtype)

    def send(self, x: jax.Array, to: int) -> None:
        self._pass_on(_bits(x), to)

    def receive(self, shape: tuple[int, ...], dtype: Any, source: int) -> jax.Array:
        return _from_bits(self._pass_on(_bits(jnp.zeros(shape, dtype)), source), shape, dtype)

    def _pass_on(self, bits: jax.Array, other: int) -> jax.Array:
        """Return the sum of the bits of this rank and of a neighbour, one of which has zeros only."""
        if other not in self._pairs:
            raise UnsupportedOp(
                f"on JAX rank {self.rank} of {self.size} is connected with {' and '.join(map(str, self._pairs))} only, "
                f"not with {other}: pass it on from rank to rank, or use broadcast"
            )
        return self._pairs[other].run(_sum, bits)

    def mean(self, xs: Sequence[jax.Array], weight: float | None) -> list[jax.Array]:
        found: list[Any] = [None] * len(xs)
        factor = 1.0 / self.size if weight is None else float(weight)
        for bucket in buckets_of([x.dtype for x in xs], [x.nbytes for x in xs]):
            parts = [xs[place] for place in bucket]
            summed = self.ranks.run(_sum, _join(parts, factor))
            for place, part in zip(bucket, _apart(summed, parts, weight is not None), strict=True):
                found[place] = part
        return found

    def barrier(self) -> None:
        self.ranks.run(_sum, jnp.zeros(1))


class _Ranks:
    """Devices of several processes, of which one is this process's own."""

    def __init__(self, devices: Sequence[Any], own: Any) -> None:
        self.own, self._mesh = own, Mesh(np.array(devices), (_RANKS,))
        self._sharding = NamedSharding(self._mesh, _SPLIT)
        self._program = cache(self.compile)

    def compile(self, function: Callable[[Any], Any], options: dict[str, Any] | None = None) -> Callable[[Any], Any]:
        """Compile a function of the arrays of each rank as a program of all."""
        # JAX 0.10: its check of which values differ between ranks refuses loops that begin with constants
        run = jax.shard_map(function, mesh=self._mesh, in_specs=_SPLIT, out_specs=_SPLIT, check_vma=False)
        return jax.jit(run, compiler_options=options)

    def run(self, function: Callable[[list[jax.Array]], list[jax.Array]], x: jax.Array) -> jax.Array:
        """Return what ``function`` of the ranks' arrays ``x`` gives on this rank."""
        return self.begin(function, x)()

    def begin(self, function: Callable[[list[jax.Array]], list[jax.Array]], x: jax.Array) -> Wait:
        """Begin to compute what ``function`` of the ranks' arrays ``x`` gives on this rank."""
        wait = self._begin_all(self._program(function), [x if x.ndim else x.reshape(1)])
        return lambda: wait()[0] if x.ndim else wait()[0].reshape(())

    def run_all(self, program: Callable[[Any], Any], xs: Sequence[jax.Array]) -> list[jax.Array]:
        """Return what a compiled program gives on this rank, on the device of the first of ``xs``, none of them 0-d."""
        return self._begin_all(program, xs)()

    def _begin_all(self, program: Callable[[Any], Any], xs: Sequence[jax.Array]) -> Callable[[], list[jax.Array]]:
        wholes = [
            jax.make_array_from_single_device_arrays((x.shape[0] * self._mesh.size, *x.shape[1:]), self._sharding, [x])
            for x in jax.device_put(list(xs), self.own)
        ]
        home = xs[0].sharding
        with _failing():
            begun = program(wholes)

        def wait() -> list[jax.Array]:
            with _failing():
                results = jax.block_until_ready([y.addressable_data(0) for y in begun])
            return jax.device_put(results, home)

        return wait


@contextmanager
def _failing() -> Iterator[None]:
    try:
        yield
    except ValueError as error:  # JAX 0.10: what XLA could not finish, by any name
        raise RuntimeError(str(error)) from error


@jax.jit
def _bits(x: jax.Array) -> jax.Array:
    return x.reshape(-1).view(jnp.uint8)


@partial(jax.jit, static_argnums=(1, 2))
def _from_bits(bits: jax.Array, shape: tuple[int, ...], dtype: Any) -> jax.Array:
    return bits.view(dtype).reshape(shape)


@jax.jit
def _join(xs: Sequence[jax.Array], factor: Any) -> jax.Array:
    """Return the tensors as one vector times ``factor``, which is the last element."""
    ones = jnp.ones(1, xs[0].dtype)
    # without samples the gradients are arbitrary
    return jnp.where(factor == 0, 0, jnp.concatenate([*(x.reshape(-1) for x in xs), ones]) * factor)


@partial(jax.jit, static_argnums=2)
def _apart(vector: jax.Array, like: Sequence[jax.Array], is_weighted: bool) -> list[jax.Array]:
    """Return the tensors of a vector, divided by the last element where they were weighted."""
    vector = vector[:-1] / vector[-1] if is_weighted else vector[:-1]
    ends = np.cumsum([x.size for x in like])
    return [vector[end - x.size : end].reshape(x.shape) for x, end in zip(like, ends, strict=True)]
