"""Average many tensors over the ranks on PyTorch; gradients already while others are still being computed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist

from ember_ml.backend.processes.group import FIRST_BUCKET_BYTES, buckets_of

__all__ = ["Overlap", "Shares", "Sum", "buckets", "merge_buckets", "real"]


_SIGNS = 4
"""How many of the first parameters of a sum are looked at: a layer's gradients are known together, in any order."""


def real(x: torch.Tensor) -> torch.Tensor:
    """Return ``x`` as real numbers, which the engines can sum."""
    return torch.view_as_real(x) if x.is_complex() else x


@torch.no_grad()
def _flatten(xs: Sequence[torch.Tensor]) -> torch.Tensor:
    """Return the elements of tensors of one dtype as one new vector."""
    flat = torch._C._nn.flatten_dense_tensors(xs)  # pyright: ignore[reportAttributeAccessIssue]
    return flat.clone() if len(xs) == 1 else flat  # torch 2.13: of one tensor it is a view


def _unflatten(flat: torch.Tensor, like: Sequence[torch.Tensor]) -> Sequence[torch.Tensor]:
    """Return views of a vector with the shapes of ``like``."""
    parts = torch._C._nn.unflatten_dense_tensors(flat, like)  # pyright: ignore[reportAttributeAccessIssue]
    # torch 2.13: those without elements lose their other axes
    return [part.view(x.shape) for part, x in zip(parts, like, strict=True)] if 0 in map(_count, like) else parts


_count = torch.Tensor.numel


class Sum:
    """A pending sum over the ranks of tensors times a number, in one flat buffer that ends with ``last``, if given."""

    def __init__(self, group: Any, xs: Sequence[torch.Tensor], scale: float, last: float | None = None) -> None:
        self._flat = _flatten(xs if last is None else [*xs, xs[0].new_full((1,), last)])
        held = self._flat if last is None else self._flat[:-1]
        if scale:
            held.mul_(scale)
        else:
            held.zero_()  # without samples the gradients are arbitrary
        self._parts = _unflatten(held, xs)
        # called directly: torch's wrapper takes longer than a small update
        self._work = group.allreduce([real(self._flat)])

    def parts(self) -> Sequence[torch.Tensor]:
        """Wait, and return the sums of the tensors."""
        self._work.wait()
        return self._parts

    def means(self) -> Sequence[torch.Tensor]:
        """Wait, and return the sums divided by the sum of the last elements."""
        self._work.wait()
        self._flat[:-1].div_(self._flat[-1])
        return self._parts

    def last(self) -> float:
        """Wait, and return the sum of the last elements."""
        self._work.wait()
        return abs(self._flat[-1].item())


class Shares:
    """The weights of the ranks' parts of a batch, and whether they were equal and constant recently."""

    def __init__(self, group: Any, device: torch.device) -> None:
        self._group, self._device = group, device
        self._last: float | None = None  # the weight of each rank's part in the last batch, if all were equal
        self._stayed = 0  # in how many batches before it was the same

    @property
    def usual(self) -> float | None:
        """Return the likely weight of each rank's part, equal on all; either all ranks know it or none does."""
        return self._last if self._stayed >= 3 else None

    def begin(self, weight: float) -> tuple[torch.Tensor, Any]:
        """Start to sum the weights over the ranks."""
        sums = torch.tensor([weight, weight * weight], dtype=torch.float64, device=self._device)
        return sums, dist.all_reduce(sums, group=self._group, async_op=True)

    def end(self, weight: float, begun: tuple[torch.Tensor, Any]) -> float:
        """Wait, and return this rank's weight divided by the sum of all."""
        sums, work = begun
        work.wait()
        total, squares = sums.tolist()
        share = weight / total
        # size * (sum of squares) == (sum)**2 only if all weights are equal
        are_equal = squares * self._group.size() == total * total
        self._stayed = self._stayed + 1 if are_equal and weight == self._last else 0
        self._last = weight if are_equal else None
        return share


def buckets(xs: Sequence[torch.Tensor], first: int | None = None) -> list[list[int]]:
    """Return the indices of the tensors that are sent together."""
    return buckets_of([(x.dtype, x.device) for x in xs], [x.nbytes for x in xs], first=first)


def merge_buckets(count: int, sums: Sequence[tuple[list[int], Sequence[torch.Tensor]]]) -> list[torch.Tensor]:
    """Return the results of the sums in the order of the tensors."""
    found: list[Any] = [None] * count
    for bucket, parts in sums:
        for place, part in zip(bucket, parts, strict=True):
            found[place] = part
    return found


class Overlap:
    """Average gradients while others are still being computed: those of the last parameters first.

    The sums start in the same order on every rank, whatever the order in which the gradients are computed. A sum starts
    when all its gradients are known, for which those are looked at that are likely to be the last. If the ranks'
    weights were equal several times, they are assumed to be equal again; a flag that is sent along tells if not. The
    last sum starts when all gradients are known; so does that of a model with a single one.
    """

    def __init__(self, group: Any, weight: float | None, shares: Shares) -> None:
        self.weight, self._group = weight, group
        self._shares = shares
        self._variables: Sequence[torch.Tensor] = []
        self._buckets: list[list[int]] = []
        self._sums: list[tuple[list[int], Sum]] = []
        self._error: RuntimeError | None = None
        self._scale: float | None = 1.0 / group.size()
        self._is_guess = weight is not None and shares.usual is not None

    def begin(self, variables: Sequence[torch.Tensor], value: torch.Tensor) -> Sequence[int]:
        """Prepare for the gradients of ``value``; return of which variables it is a sign that theirs are known."""
        last, found = len(variables) - 1, buckets(variables[::-1], FIRST_BUCKET_BYTES)
        self._buckets = [[last - place for place in bucket] for bucket in found]
        if len(self._buckets) == 1:
            return ()
        if self.weight is not None and not self._is_guess:  # sent while the first gradients are computed
            self._scale = None
            self._begun = self._shares.begin(self.weight)
        self._value = value.detach()
        self._variables = variables
        self._sums, self._error = [], None
        return [place for bucket in self._buckets[:-1] for place in bucket[-_SIGNS:]]

    def look(self, _: torch.Tensor) -> None:
        """Start the sums whose gradients are all known, but for the last sum."""
        try:
            while len(self._sums) < len(self._buckets) - 1:
                bucket = self._buckets[len(self._sums)]
                # the last ones first: as long as one of them is unknown, nobody need look at the others
                if any(self._variables[place].grad is None for place in reversed(bucket)):
                    break
                self._start([self._variables[place].grad for place in bucket])
        except RuntimeError as error:  # raised when waiting, not inside a backward pass
            self._error = error

    def _start(self, gradients: Sequence[Any]) -> None:
        """Start the next sum, that of these gradients."""
        if self._scale is None:
            assert self.weight is not None
            self._scale = self._shares.end(self.weight, self._begun)
        bucket, is_first = self._buckets[len(self._sums)], not self._sums
        if is_first and self._carries_value():
            bucket, gradients = [*bucket, len(self._variables)], [*gradients, self._value]
        differs = float(self.weight != self._shares.usual) if is_first and self._is_guess else None
        self._sums.append((bucket, Sum(self._group, gradients, self._scale, differs)))

    def _carries_value(self) -> bool:
        """Whether the value, which is usually averaged too, fits into the first message."""
        first = self._variables[self._buckets[0][0]]
        return self._value.dtype == first.dtype and self._value.device == first.device

    def is_of(self, xs: Sequence[torch.Tensor]) -> bool:
        """Whether ``xs`` are the gradients of the variables, possibly followed by the value.

        A variable that the value does not depend on has none, and any is right.
        """
        count = len(self._variables)
        if not 0 < count <= len(xs) <= count + 1:
            return False
        for x, variable in zip(xs, self._variables, strict=False):
            gradient = variable.grad
            if x is not gradient and not (
                _is_like(x, variable) if gradient is None else x.data_ptr() == gradient.data_ptr()
            ):
                return False
        return len(xs) == count or (self._carries_value() and xs[count].data_ptr() == self._value.data_ptr())

    def wait_for_means(self, xs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """Wait, and return the means of the gradients, and of the value if it is among ``xs``."""
        self._start_all(xs)
        if self._is_guess and self._sums[0][1].last():  # wrong: repeat with the right weights
            assert self.weight is not None
            for _, made in self._sums:
                made.parts()
            self._is_guess, self._sums = False, []
            self._scale = self._shares.end(self.weight, self._shares.begin(self.weight))
            self._start_all(xs)
        sums = [(bucket, made.parts()) for bucket, made in self._sums]
        return merge_buckets(len(self._variables) + 1, sums)[: len(xs)]

    def forget(self) -> None:
        """Let go of the variables, which hold this object by their hooks: Python's collector does not see that."""
        self._variables, self._sums = (), []

    def _start_all(self, xs: Sequence[torch.Tensor]) -> None:
        while self._error is None and len(self._sums) < len(self._buckets):
            self._start([xs[place] for place in self._buckets[len(self._sums)]])
        if self._error is not None:
            raise self._error


def _is_like(x: torch.Tensor, y: torch.Tensor) -> bool:
    return x.dtype == y.dtype and x.shape == y.shape and x.device == y.device
