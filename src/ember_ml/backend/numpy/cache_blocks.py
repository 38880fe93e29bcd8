"""Split large work into blocks that stay in the processor's cache."""

from __future__ import annotations

import math
from collections.abc import Iterator

__all__ = ["blocks"]


def blocks(shape: tuple[int, ...], most: int) -> Iterator[tuple[slice, ...]]:
    """Yield slices that cut a tensor of this shape along its first dimensions into blocks of at most ``most`` elements.

    A block is whole in the dimensions without a slice.
    """
    length, *rest = shape
    each = math.prod(rest)
    if each > most and rest:
        for index in range(length):
            for inner in blocks(tuple(rest), most):
                yield (slice(index, index + 1), *inner)
        return
    step = max(most // max(each, 1), 1)
    for start in range(0, length, step):
        yield (slice(start, min(start + step, length)),)
