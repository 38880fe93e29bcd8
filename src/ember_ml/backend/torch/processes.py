"""Process groups on PyTorch: gloo for tensors in host memory, NCCL for tensors on GPUs."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from ember_ml.backend.processes.group import Group, Place, Wait, address_of
from ember_ml.backend.processes.rendezvous import agreed_address, meet_by_store
from ember_ml.backend.torch.gradient_buckets import Overlap, Shares, Sum, buckets, merge_buckets, real
from ember_ml.backend.torch.gradients import watch
from ember_ml.errors import DeviceError, UnsupportedDType

__all__ = ["connect", "joined"]

_HOW = {"sum": dist.ReduceOp.SUM, "max": dist.ReduceOp.MAX, "min": dist.ReduceOp.MIN}
# torch 2.12: both have other names
_reduce_scatter = getattr(dist, "reduce_scatter_single", None) or dist.reduce_scatter_tensor
_all_gather = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor
_LEAST_BROADCAST = 2**18  # bytes of each rank, from which on a message for each rank is no loss
# torch 2.13: gloo does not reduce these dtypes; wider ones hold all values, and their sums wrap in the same way
_WIDER = {torch.uint16: torch.int32, torch.uint32: torch.int64, torch.int16: torch.int32}


def connect(place: Place) -> TorchGroup:
    """Return the group of all processes; an existing one of ``torch.distributed`` is reused."""
    if not dist.is_initialized():
        _initialize(place)
    return TorchGroup(dist.get_backend(), dist.get_rank(), dist.get_world_size())


def joined() -> tuple[int, int] | None:
    return (dist.get_rank(), dist.get_world_size()) if dist.is_available() and dist.is_initialized() else None


def _initialize(place: Place) -> None:
    engine, device = "gloo", None
    if torch.cuda.is_available():
        engine, device = "cpu:gloo,cuda:nccl", torch.device("cuda", _gpu_of(place))
        torch.cuda.set_device(device)
    timeout = timedelta(seconds=place.timeout)
    if "TORCHELASTIC_RUN_ID" in os.environ:
        # torch 2.13: after a restart, torchrun's store still has the addresses of ranks that died, and gloo waits there
        met: dict[str, Any] = {"store": meet_by_store(place)[0]}
    else:
        host, port = address_of(agreed_address(place), "torch.distributed")
        met = {"init_method": f"tcp://{host}:{port}"}
    dist.init_process_group(
        engine, **met, rank=place.rank, world_size=place.world_size, timeout=timeout, device_id=device
    )


def _gpu_of(place: Place) -> int:
    count = torch.cuda.device_count()
    if place.local_rank >= count:
        raise DeviceError(
            f"rank {place.rank} is number {place.local_rank} on its machine, which has {count} GPU(s): start one "
            "process for each GPU, or hide the GPUs (CUDA_VISIBLE_DEVICES='') to compute on the CPU"
        )
    return place.local_rank


class TorchGroup(Group):
    """A process group of ``torch.distributed``, by default that of all processes."""

    _begun: Overlap | None = None
    _shares: Shares | None = None

    def __init__(self, engine: str, rank: int, size: int, handle: Any = None) -> None:
        super().__init__(engine, rank, size)
        self._handle: Any = dist.group.WORLD if handle is None else handle

    def subgroup(self, members: Sequence[Sequence[int]]) -> TorchGroup:
        # each process takes part in making each group
        handles = [dist.new_group(list(ranks)) for ranks in members]
        place = next(place for place, ranks in enumerate(members) if self.rank in ranks)
        rank = list(members[place]).index(self.rank)
        return TorchGroup(self.engine, rank, len(members[place]), handles[place])

    def begin_all_reduce(self, x: torch.Tensor, how: str) -> Wait:
        if x.dtype is torch.uint64:
            raise UnsupportedDType("torch.distributed does not reduce uint64; cast it to int64")
        work = x.to(_WIDER.get(x.dtype, x.dtype), memory_format=torch.contiguous_format, copy=True)
        begun = dist.all_reduce(real(work), _HOW[how], self._handle, async_op=True)
        return _wait(begun, work) if x.dtype == work.dtype else lambda: _wait(begun, work)().to(x.dtype)

    def begin_all_gather(self, x: torch.Tensor) -> Wait:
        joined = x.new_empty((self.size * x.shape[0], *x.shape[1:]) if x.dim() else (self.size,))
        sent = _bytes(x.contiguous())
        if x.device.type == "cpu" and sent.numel() >= _LEAST_BROADCAST:
            return self._begin_broadcasts(joined, sent)
        return _wait(_all_gather(_bytes(joined), sent, self._handle, async_op=True), joined, sent)

    def begin_reduce_scatter(self, x: torch.Tensor) -> Wait:
        if x.dtype in _WIDER or x.dtype is torch.uint64:
            return super().begin_reduce_scatter(x)
        if x.device.type == "cpu":
            return self._begin_exchange(x)
        part = x.new_empty((x.shape[0] // self.size, *x.shape[1:]))
        sent = real(x.contiguous())
        return _wait(_reduce_scatter(real(part), sent, group=self._handle, async_op=True), part, sent)

    def _begin_broadcasts(self, joined: torch.Tensor, sent: torch.Tensor) -> Wait:
        """Gather the bytes of all ranks, each from its own rank: torch 2.13: gloo's own way copies them once more."""
        parts = _bytes(joined).view(self.size, -1)
        parts[self.rank].copy_(sent)
        begun: list[Any] = [
            dist.broadcast(part, group=self._handle, group_src=rank, async_op=True) for rank, part in enumerate(parts)
        ]

        def wait() -> torch.Tensor:
            for work in begun:
                work.wait()
            return joined

        return wait

    def _begin_exchange(self, x: torch.Tensor) -> Wait:
        """Sum this rank's parts, which all send it: torch 2.13: gloo's own way sums everything on every rank."""
        wait = self.begin_all_to_all(x)

        def add() -> torch.Tensor:
            first, *others = wait().view(self.size, x.shape[0] // self.size, *x.shape[1:])
            found = torch.add(first, others[0])
            for other in others[1:]:
                found.add_(other)
            return found

        return add

    def begin_all_to_all(self, x: torch.Tensor) -> Wait:
        made = torch.empty_like(x, memory_format=torch.contiguous_format)
        sent = _bytes(x.contiguous())
        return _wait(dist.all_to_all_single(_bytes(made), sent, group=self._handle, async_op=True), made, sent)

    def begin_broadcast(self, x: torch.Tensor, source: int) -> Wait:
        work = x.clone(memory_format=torch.contiguous_format)
        return _wait(dist.broadcast(_bytes(work), group=self._handle, group_src=source, async_op=True), work)

    def send(self, x: torch.Tensor, to: int) -> None:
        dist.send(_bytes(x.contiguous()), group=self._handle, group_dst=to)

    def receive(self, shape: tuple[int, ...], dtype: torch.dtype, source: int) -> torch.Tensor:
        made = torch.empty(shape, dtype=dtype, device=self._device())
        dist.recv(_bytes(made), group=self._handle, group_src=source)
        return made

    def mean(self, xs: Sequence[torch.Tensor], weight: float | None) -> list[torch.Tensor]:
        begun = self._begun
        try:
            if begun is not None and begun.weight == weight and begun.is_of(xs):
                return begun.wait_for_means(xs)
        finally:
            self._forget_begun()
        places = buckets(xs)
        # start all before waiting for the first: one is prepared while others are sent
        if weight is None:
            sums = [Sum(self._handle, [xs[place] for place in bucket], 1.0 / self.size) for bucket in places]
            found = [made.parts() for made in sums]
        else:
            sums = [Sum(self._handle, [xs[place] for place in bucket], weight, weight) for bucket in places]
            found = [made.means() for made in sums]
        return merge_buckets(len(xs), list(zip(places, found, strict=True)))

    @contextmanager
    def overlapping(self, weight: float | None) -> Iterator[None]:
        """Average gradients while others are still being computed inside the block."""
        if self._shares is None:
            self._shares = Shares(self._handle, torch.device("cpu") if "gloo" in self.engine else self._device())
        self._forget_begun()
        self._begun = Overlap(self._handle, weight, self._shares)
        before = watch(self._begun)
        try:
            yield
        finally:
            watch(before)

    def _forget_begun(self) -> None:
        """Let go of gradients that nobody asked for."""
        if self._begun is not None:
            self._begun.forget()
            self._begun = None

    def barrier(self) -> None:
        dist.barrier(self._handle)

    def close(self) -> None:
        # Its threads end with its last reference; before Python 3.14 one that runs at Python's end aborts the process.
        self._forget_begun()
        self._handle = self._shares = None
        if dist.is_initialized():
            dist.destroy_process_group()

    def _device(self) -> torch.device:
        return torch.device("cuda", torch.cuda.current_device()) if "nccl" in self.engine else torch.device("cpu")


def _wait(begun: Any, result: torch.Tensor, sent: torch.Tensor | None = None) -> Wait:
    """Return what waits for work of the engine and gives its result; until then ``sent`` must not be freed."""

    def wait() -> torch.Tensor:
        nonlocal sent
        begun.wait()
        sent = None
        return result

    return wait


def _bytes(x: torch.Tensor) -> torch.Tensor:
    """Return the memory of ``x`` as bytes: sending needs no dtype that the engine knows."""
    return x.view(-1).view(torch.uint8) if x.dim() else x.view(1).view(torch.uint8)
