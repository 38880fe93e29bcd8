"""Let layers compute with this process's part of each sequence, of which other processes have the other parts.

Most layers treat every position alike, and need not know of it. Those that number positions, or look from one to
others, ask :func:`current_part`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ember_ml import ops
from ember_ml.typing import Tensor, TensorLike

__all__ = ["SequencePart", "computing_on", "current_part"]


@dataclass(frozen=True)
class SequencePart:
    """One of several equal parts of sequences, in their order."""

    index: int
    count: int
    join: Callable[[Tensor, int], Tensor]
    """Gathers what all processes have along an axis; gradients go back to each."""

    def gather_keys(
        self, key: Tensor, value: Tensor, bias: TensorLike | None, mask: TensorLike | None, is_causal: bool
    ) -> tuple[Tensor, Tensor, TensorLike | None, TensorLike | None]:
        """Return the keys and values that queries of this part may see, and their bias and mask.

        Where ``is_causal`` these end with the part, so that the last query stands at the last key.
        """
        length = key.shape[1]
        key, value = self.join(key, 1), self.join(value, 1)
        bias, mask = self._cover_keys("bias", bias, length), self._cover_keys("mask", mask, length)
        if not is_causal or self.index == self.count - 1:
            return key, value, bias, mask
        end = length * (self.index + 1)
        key, value = (ops.get_item(x, (slice(None), slice(end))) for x in (key, value))
        return key, value, _take_keys(bias, end), _take_keys(mask, end)

    def _cover_keys(self, name: str, x: TensorLike | None, length: int) -> TensorLike | None:
        """Return a bias or mask of all keys; one for the keys of this part, and for all queries, is gathered."""
        shape = () if x is None else tuple(ops.shape(x))
        if not shape or shape[-1] in (1, length * self.count):
            return x
        if shape[-1] == length and (len(shape) < 2 or shape[-2] == 1):
            return self.join(ops.asarray(x), len(shape) - 1)
        raise ValueError(
            f"each process has a part of the sequence, {length} positions of {length * self.count}: the {name} of an "
            f"attention is for the queries of the part and all keys, or for the keys of the part and every query, and "
            f"not of shape {shape}"
        )


def _take_keys(x: TensorLike | None, end: int) -> TensorLike | None:
    return x if x is None or tuple(ops.shape(x))[-1:] in ((), (1,)) else ops.get_item(x, (..., slice(end)))


_part: SequencePart | None = None
"""Of the process and not of a thread: a backward pass, which may compute layers again, can have its own threads."""


def current_part() -> SequencePart | None:
    """Return which part of the sequences layers compute with now; None where they have whole ones."""
    return _part


@contextmanager
def computing_on(part: SequencePart | None) -> Iterator[None]:
    """A block in which layers compute with this part of the sequences."""
    global _part
    before, _part = _part, part
    try:
        yield
    finally:
        _part = before
