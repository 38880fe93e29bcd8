"""Sharded parameters: each process holds a part, and gathers the whole only while it is used, forward and backward.

Autograd would keep each whole parameter from the forward pass to the backward pass. While a gradient is recorded, it
keeps a note instead, by which the backward pass gathers the parameter again.
"""

from __future__ import annotations

import weakref
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import torch

from ember_ml.backend.common.sharding import Shares
from ember_ml.backend.processes.group import Group

__all__ = ["Split", "recording"]


class Split(Shares):
    """A parameter of which this process holds a part, and those of its wholes that still exist."""

    def __init__(self, shape: tuple[int, ...], group: Group, collectives: Any) -> None:
        super().__init__(shape, group, collectives)
        self._whole: weakref.ref[torch.Tensor] | None = None
        self._source: tuple[torch.Tensor, int] | None = None  # the part it was gathered from, and its version

    def part_of(self, whole: torch.Tensor) -> torch.Tensor:
        """Copy this process's part of a whole parameter."""
        flat = whole.detach().reshape(-1)[self._start : self._start + self.share]
        return torch.nn.functional.pad(flat, (0, self.share - flat.numel())).clone()

    def whole_of(self, part: torch.Tensor) -> torch.Tensor:
        """Return the whole parameter; reuse one that still exists."""
        source = self._source
        is_same = source is not None and source[0] is part and source[1] == part._version
        found = self._whole() if self._whole is not None and is_same else None
        if found is None:
            found = _Gathered.apply(part, self) if part.requires_grad else self.gather_whole(part)
            assert isinstance(found, torch.Tensor)
            self._remember(found, part)
        return found

    def _remember(self, whole: torch.Tensor, part: torch.Tensor) -> None:
        address = whole.untyped_storage().data_ptr()
        note = (self, part.detach())
        _wholes[address] = note

        def forget(_: Any) -> None:
            if _wholes.get(address) is note:
                del _wholes[address]
            if self._whole is reference:
                self._whole = self._source = None

        self._whole = reference = weakref.ref(whole, forget)
        self._source = part, part._version

    def gather_whole(self, part: torch.Tensor) -> torch.Tensor:
        return self.gather(part.detach())[: self.size].view(self.shape)

    def scatter_gradient(self, gradient: torch.Tensor) -> torch.Tensor:
        return self.scatter(torch.nn.functional.pad(gradient.reshape(-1), (0, self._padding)))


_wholes: dict[int, tuple[Split, torch.Tensor]] = {}
"""How to gather each gathered parameter that exists again, by the address of its memory."""


class _Gathered(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, part: torch.Tensor, split: Split) -> torch.Tensor:
        ctx.split = split
        return split.gather_whole(part)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        return ctx.split.scatter_gradient(gradients[0]), None


class _Note(NamedTuple):
    """A view of a gathered parameter, as autograd keeps it."""

    split: Split
    part: torch.Tensor
    shape: torch.Size
    strides: tuple[int, ...]
    offset: int


def _pack(x: torch.Tensor) -> Any:
    found = _wholes.get(x.untyped_storage().data_ptr())
    if found is None or not x.numel():
        return x.detach()
    return _Note(*found, x.shape, x.stride(), int(x.storage_offset()))


def _unpack(x: Any) -> torch.Tensor:
    if not isinstance(x, _Note):
        return x
    return torch.as_strided(x.split.gather_whole(x.part), x.shape, x.strides, x.offset)


def recording() -> AbstractContextManager[Any]:
    """Open a block in which autograd keeps notes instead of gathered parameters."""
    return torch.autograd.graph.saved_tensors_hooks(_pack, _unpack)
