"""Averages of many tensors over the ranks on PyTorch, also of gradients while others are still being computed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch._utils import _flatten_dense_tensors, _unflatten_dense_tensors

from ember_ml.backend.groups import buckets_of

__all__ = ["Overlap", "Sum", "put_together", "real"]


def real(x: torch.Tensor) -> torch.Tensor:
    """``x`` as real numbers, which is what the engines sum."""
    return torch.view_as_real(x) if x.is_complex() else x


class Sum:
    """Tensors times a number, in one vector that is being summed over the ranks.

    With ``has_total`` the numbers of the ranks are summed with them, and the results divided by that.
    """

    def __init__(self, xs: Sequence[torch.Tensor], scale: float, has_total: bool) -> None:
        self._like = [*xs, xs[0].new_ones(1)] if has_total else list(xs)
        self._has_total = has_total
        flat = _flatten_dense_tensors(self._like)
        flat = flat.mul_(scale) if scale else flat.zero_()  # of no samples, anything may have been computed
        self._flat = flat
        self._work: Any = dist.all_reduce(real(flat), async_op=True)

    def parts(self) -> Sequence[torch.Tensor]:
        """The sums of the tensors, once they are there."""
        self._work.wait()
        if self._has_total:
            self._flat[:-1].div_(self._flat[-1])
        found = _unflatten_dense_tensors(self._flat, self._like)
        return found[:-1] if self._has_total else found


def buckets(xs: Sequence[torch.Tensor]) -> list[list[int]]:
    """The places of tensors that travel together."""
    return buckets_of([(x.dtype, x.device) for x in xs], [x.numel() * x.element_size() for x in xs])


def put_together(count: int, sums: Sequence[tuple[list[int], Sum]]) -> list[torch.Tensor]:
    """The results of the sums, each at its place."""
    found: list[Any] = [None] * count
    for bucket, made in sums:
        for place, part in zip(bucket, made.parts(), strict=True):
            found[place] = part
    return found


class Overlap:
    """Averages gradients while others are still being computed: of the last parameters first, as they become known.

    The sums start in the same order on every rank, whatever the order in which their gradients become known.
    """

    def __init__(self, size: int, weight: float | None, device: torch.device) -> None:
        self.weight = weight
        self._variables: Sequence[torch.Tensor] = []
        self._taken: list[torch.Tensor | None] = []
        self._buckets: list[list[int]] = []
        self._bucket_of: dict[int, int] = {}
        self._missing: list[int] = []  # of each bucket, how many gradients are not known yet
        self._sums: list[tuple[list[int], Sum]] = []
        self._error: RuntimeError | None = None
        self._scale: float | None = 1.0 / size
        if weight is not None:  # the sum of the weights travels while the first gradients are computed
            self._scale = None
            self._total = torch.tensor([float(weight)], dtype=torch.float64, device=device)
            self._work: Any = dist.all_reduce(self._total, async_op=True)

    def begin(self, variables: Sequence[torch.Tensor], value: torch.Tensor) -> None:
        """A computation of the gradients of ``value`` with respect to ``variables`` begins."""
        last = len(variables) - 1
        self._value = value.detach()
        self._variables, self._taken = variables, [None] * len(variables)
        self._buckets = [[last - place for place in bucket] for bucket in buckets(variables[::-1])]
        self._bucket_of = {place: number for number, bucket in enumerate(self._buckets) for place in bucket}
        self._missing = [len(bucket) for bucket in self._buckets]
        self._sums, self._error = [], None

    def take(self, place: int, gradient: torch.Tensor) -> None:
        """The gradient of a variable is known."""
        self._taken[place] = gradient
        self._missing[self._bucket_of[place]] -= 1
        try:
            while len(self._sums) < len(self._buckets) and not self._missing[len(self._sums)]:
                self._start()
        except RuntimeError as error:  # raised where it is waited for, not from within a backward pass
            self._error = error

    def _start(self) -> None:
        if self._scale is None:
            assert self.weight is not None
            self._work.wait()
            self._scale = self.weight / self._total.item()
        bucket = self._buckets[len(self._sums)]
        taken = [(self._taken[place], self._variables[place]) for place in bucket]
        parts = [torch.zeros_like(x) if gradient is None else gradient for gradient, x in taken]
        if not self._sums and self._carries_value():
            bucket = [*bucket, len(self._taken)]
            parts.append(self._value)
        self._sums.append((bucket, Sum(parts, self._scale, False)))

    def _carries_value(self) -> bool:
        """Whether the value, which is usually to be averaged too, fits the first message."""
        first = self._variables[self._buckets[0][0]]
        return self._value.dtype == first.dtype and self._value.device == first.device

    def is_of(self, xs: Sequence[torch.Tensor]) -> bool:
        """Whether ``xs`` are the gradients that were taken, and perhaps the value; where a variable does not matter,
        none was taken.
        """
        pairs = zip(xs, self._taken, strict=False)
        count = len(self._taken)
        if not 0 < count <= len(xs) <= count + 1 or any(
            y is not None and x.data_ptr() != y.data_ptr() for x, y in pairs
        ):
            return False
        return len(xs) == count or (self._carries_value() and xs[count].data_ptr() == self._value.data_ptr())

    def finished(self, xs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """The means of the gradients, and of the value where it is among ``xs``."""
        while self._error is None and len(self._sums) < len(self._buckets):
            self._start()
        if self._error is not None:
            raise self._error
        return put_together(len(self._taken) + 1, self._sums)[: len(xs)]
