"""Sharded parameters: each process holds a part, and gathers the whole only while it is used, forward and backward.

Parameters are gathered in units, of which each is one vector, and their gradients are sent in the same units. Autograd
would keep each whole parameter from the forward pass to the backward pass. While a gradient is recorded, it keeps a
note instead, by which the backward pass gathers the unit again.
"""

from __future__ import annotations

import math
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from itertools import accumulate
from typing import Any, NamedTuple

import torch

from ember_ml.backend.common.sharding import Shares
from ember_ml.backend.processes.group import Group

__all__ = ["make_splits", "recording", "takes_unequal_parts"]

takes_unequal_parts: bool = True

_MOST_KEPT = 2
"""So many units stay whole at a time, beside what the computation itself uses: models read neighbours in turn."""


def make_splits(shapes: Sequence[tuple[int, ...]], group: Group, collectives: Any) -> list[Split]:
    """Return how parameters of these shapes and one dtype are split over the processes of ``group``, as one unit."""
    return _Unit(shapes, group, collectives).splits


class _Unit(Shares):
    """Parameters as one vector; of each of them a process has all, a part or nothing."""

    def __init__(self, shapes: Sequence[tuple[int, ...]], group: Group, collectives: Any) -> None:
        self.sizes = [math.prod(shape) for shape in shapes]
        self.begins = [0, *accumulate(self.sizes)]
        super().__init__((self.begins[-1],), group, collectives)
        self.splits = [Split(self, place, shape) for place, shape in enumerate(shapes)]
        self._ready: _Gathering | None = None

    def bounds_on(self, rank: int, place: int) -> tuple[int, int]:
        """Return where the part of a process begins and ends in a parameter."""
        start, size = self.share * rank - self.begins[place], self.sizes[place]
        return min(max(start, 0), size), min(max(start + self.share, 0), size)

    def take(self, place: int, part: torch.Tensor) -> torch.Tensor:
        """Return a whole parameter of which this process has ``part``, gathered with the others or before."""
        ready = self._ready
        whole = None if ready is None else ready.take(place, part)
        if whole is None:
            parts = self._read_parts(place, part)
            if parts is None:
                return self.splits[place].gather_alone(part)
            self._ready = ready = _Gathering(self, parts)
            _keep(self)
            whole = ready.take(place, part)
            assert whole is not None
        if ready is not None and not ready.left:
            self._ready = None
        return whole

    def _read_parts(self, place: int, part: torch.Tensor) -> list[torch.Tensor] | None:
        """Return the parts of all parameters; None where ``part`` is not the one of its parameter, as in a copy."""
        holders = [split.holder() for split in self.splits]
        parts = [getattr(holder, "held", None) for holder in holders]
        found = [x for x in parts if isinstance(x, torch.Tensor) and x.device == part.device]
        return found if parts[place] is part and len(found) == len(parts) else None

    def release(self) -> None:
        """Keep no whole parameters for those that have not been read."""
        self._ready = None

    def gather_flat(self, parts: Sequence[torch.Tensor]) -> torch.Tensor:
        """Return the vector of all parameters, with its padding."""
        own = parts[0] if len(parts) == 1 else torch.cat(list(parts))
        return self.gather(self._pad(own, self.share))

    @staticmethod
    def _pad(x: torch.Tensor, length: int) -> torch.Tensor:
        missing = length - x.numel()
        return torch.nn.functional.pad(x, (0, missing)) if missing else x

    def scatter_gradients(self, gradients: Sequence[torch.Tensor | None], like: torch.Tensor) -> list[torch.Tensor]:
        """Return this process's parts of the means of the gradients of all parameters; None is a gradient of zeros."""
        flat = like.new_empty(self.share * self.group.size)
        *places, padding = flat.split([*self.sizes, flat.numel() - self.begins[-1]])
        padding.zero_()
        for place, gradient, split in zip(places, gradients, self.splits, strict=True):
            if gradient is None:
                place.zero_()
            else:
                place.view(split.shape).copy_(gradient)
        own = self.scatter(flat)[: sum(split.share for split in self.splits)]
        return list(own.split([split.share for split in self.splits]))


class _Source:
    """From which parts a vector was gathered: what autograd keeps in place of the parameters in it."""

    def __init__(self, gather: Callable[[Sequence[torch.Tensor]], torch.Tensor], parts: Sequence[torch.Tensor]) -> None:
        self._gather, self._parts = gather, [part.detach() for part in parts]
        self._again: torch.Tensor | None = None
        self._alive = 0

    def note(self, wholes: Sequence[torch.Tensor]) -> None:
        """Note that these parameters lie in the vector, as long as one of them exists."""
        self._alive = len(wholes)
        address = wholes[0].untyped_storage().data_ptr()
        _sources[address] = self

        def forget(_: Any) -> None:
            self._alive -= 1
            if not self._alive and _sources.get(address) is self:
                del _sources[address]

        self._references = [weakref.ref(whole, forget) for whole in wholes]

    def gather(self) -> torch.Tensor:
        """Return the vector, which may still be there."""
        if self._again is None:
            self._again = self._gather(self._parts)
            _keep(self)
        return self._again

    def release(self) -> None:
        """Keep the vector no longer."""
        self._again = None


class _Gathering:
    """The whole parameters of a unit that were gathered together, until each is read."""

    def __init__(self, unit: _Unit, parts: Sequence[torch.Tensor]) -> None:
        self._parts = [(part, part._version) for part in parts]
        source = _Source(unit.gather_flat, parts)
        if torch.is_grad_enabled() and any(part.requires_grad for part in parts):
            wholes = _Gathered.apply(unit, source, *parts)
            assert isinstance(wholes, tuple)
        else:
            wholes = _cut(unit, unit.gather_flat([part.detach() for part in parts]))
        source.note(wholes)
        self._wholes: list[torch.Tensor | None] = list(wholes)
        self.left = len(wholes)
        """How many have not been read."""

    def take(self, place: int, part: torch.Tensor) -> torch.Tensor | None:
        """Return a parameter, which is read now; None where it was before, or was gathered from another part."""
        known, version = self._parts[place]
        whole = self._wholes[place]
        if whole is None or known is not part or version != part._version:
            return None
        self._wholes[place], self.left = None, self.left - 1
        return whole


def _cut(unit: _Unit, flat: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Return the parameters that lie in a vector; not as views, which autograd would tie to each other."""
    storage = flat.untyped_storage()
    return tuple(
        [
            flat.new_empty(0).set_(storage, begin, split.shape)  # type: ignore[call-overload]
            for begin, split in zip(unit.begins, unit.splits, strict=False)
        ]
    )


class Split:
    """How one parameter is split: the part that this process has of it, as a vector, and the way to the whole."""

    def __init__(self, unit: _Unit, place: int, shape: tuple[int, ...]) -> None:
        self._unit, self._place = unit, place
        self.shape, self.size = shape, math.prod(shape)
        begin, end = unit.bounds_on(unit.group.rank, place)
        self.share = end - begin
        """The number of elements that this process has."""
        self.holder: Callable[[], Any] = lambda: None
        self._whole: Callable[[], torch.Tensor | None] = lambda: None
        self._source: tuple[torch.Tensor, int] | None = None  # the part it was gathered from, and its version

    def belong_to(self, parameter: Any) -> None:
        """Let ``parameter``, whose attribute ``held`` is this process's part, be gathered with those of its unit."""
        self.holder = weakref.ref(parameter)

    def span(self) -> tuple[int, int]:
        """Return where this process's part begins in the parameter, and how many elements it has."""
        return self._unit.bounds_on(self._unit.group.rank, self._place)[0], self.share

    def part_of(self, whole: torch.Tensor) -> torch.Tensor:
        """Copy this process's part of a whole parameter."""
        start, count = self.span()
        return whole.detach().reshape(-1)[start : start + count].clone()

    def whole_of(self, part: torch.Tensor) -> torch.Tensor:
        """Return the whole parameter; reuse one that still exists."""
        source = self._source
        is_same = source is not None and source[0] is part and source[1] == part._version
        found = self._whole() if is_same else None
        if found is None:
            found = self._unit.take(self._place, part)
            self._whole = weakref.ref(found)
            self._source = part, part._version
        return found

    def gather_alone(self, part: torch.Tensor) -> torch.Tensor:
        """Return the whole of which this process has ``part``, gathered without the others of its unit."""
        if not (torch.is_grad_enabled() and part.requires_grad):
            return self.gather_whole(part)
        source = _Source(lambda parts: self.gather_whole(parts[0]).view(-1), [part])
        found = _GatheredAlone.apply(self, source, part)
        assert isinstance(found, torch.Tensor)
        source.note([found])
        return found

    def gather_whole(self, part: torch.Tensor) -> torch.Tensor:
        """Return a whole tensor of the parameter's shape, as of the optimizer's state, from the parts of it."""
        unit = self._unit
        longest = min(self.size, unit.share)
        rows = unit.gather(unit._pad(part.detach().reshape(-1), longest)).view(unit.group.size, longest)
        lengths = [end - begin for begin, end in self._bounds()]
        return torch.cat([row[:length] for row, length in zip(rows, lengths, strict=True)]).view(self.shape)

    def scatter_gradient(self, gradient: torch.Tensor) -> torch.Tensor:
        """Return this process's part of the mean of the gradients of this parameter alone."""
        unit, flat = self._unit, gradient.reshape(-1)
        longest = min(self.size, unit.share)
        rows = [unit._pad(flat[begin:end], longest) for begin, end in self._bounds()]
        return unit.scatter(torch.cat(rows))[: self.share]

    def _bounds(self) -> list[tuple[int, int]]:
        return [self._unit.bounds_on(rank, self._place) for rank in range(self._unit.group.size)]


_sources: dict[int, _Source] = {}
"""From what each gathered vector that exists was gathered, by the address of its memory."""
_kept: deque[Any] = deque()
"""Units and sources that keep whole parameters, the latest last."""


def _keep(holder: Any) -> None:
    """Note that ``holder`` keeps whole parameters; let the one release its own that does so longest."""
    _kept.append(holder)
    while len(_kept) > _MOST_KEPT:
        _kept.popleft().release()


class _Gathered(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, unit: _Unit, source: _Source, *parts: torch.Tensor) -> tuple[torch.Tensor, ...]:
        ctx.unit, ctx.source, ctx.like = unit, source, parts[0].detach()
        ctx.set_materialize_grads(False)
        wholes = _cut(unit, unit.gather_flat(parts))
        ctx.mark_non_differentiable(*(x for x, part in zip(wholes, parts, strict=True) if not part.requires_grad))
        return wholes

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor | None) -> Any:
        ctx.source.release()
        return None, None, *ctx.unit.scatter_gradients(gradients, ctx.like)


class _GatheredAlone(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, split: Split, source: _Source, part: torch.Tensor) -> torch.Tensor:
        ctx.split, ctx.source = split, source
        return split.gather_whole(part)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        ctx.source.release()
        return None, None, ctx.split.scatter_gradient(gradients[0])


class _Note(NamedTuple):
    """A view of a gathered parameter, as autograd keeps it."""

    source: _Source
    shape: torch.Size
    strides: tuple[int, ...]
    offset: int


def _pack(x: torch.Tensor) -> Any:
    found = _sources.get(x.untyped_storage().data_ptr())
    if found is None or not x.numel():
        return x.detach()
    return _Note(found, x.shape, x.stride(), int(x.storage_offset()))


def _unpack(x: Any) -> torch.Tensor:
    if not isinstance(x, _Note):
        return x
    return torch.as_strided(x.source.gather(), x.shape, x.strides, x.offset)


def recording() -> AbstractContextManager[Any]:
    """Open a block in which autograd keeps notes instead of gathered parameters."""
    return torch.autograd.graph.saved_tensors_hooks(_pack, _unpack)
