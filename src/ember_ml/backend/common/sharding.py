"""Parameters of which each process holds a part, for every backend."""

from __future__ import annotations

import math
from typing import Any

from ember_ml.backend.processes.group import Group

__all__ = ["Shares"]


class Shares:
    """Parameters as one flat vector, padded with zeros, of which each process of ``group`` holds an equal part.

    ``collectives`` is what exchanges tensors among the processes: ``all_gather(x, group)``,
    ``reduce_scatter(x, "mean", group)``, and ``exchange(what, function, group)``, which calls a function in which this
    process waits for the others.
    """

    collectives: Any
    group: Any
    shape: tuple[int, ...]
    share: int
    """The number of elements of a part, with padding."""
    size: int

    def __init__(self, shape: tuple[int, ...], group: Group, collectives: Any) -> None:
        self.shape, self.size = shape, math.prod(shape)
        self.share = -(-self.size // group.size)
        self._start, self._padding = self.share * group.rank, self.share * group.size - self.size
        self.group, self.collectives = group, collectives

    def belong_to(self, parameter: Any) -> None:
        """Let ``parameter``, whose ``held`` is the part, be gathered with its neighbours; here each is alone."""

    def span(self) -> tuple[int, int]:
        """Return where this process's part begins in the vector, and how many elements it has without padding."""
        start = min(self._start, self.size)
        return start, min(self.share, self.size - start)

    def gather(self, part: Any) -> Any:
        """Return the parts of all processes as one vector."""
        return self.collectives.all_gather(part, self.group)

    def scatter(self, vector: Any) -> Any:
        """Return this process's part of the mean over all processes."""
        return self.collectives.reduce_scatter(vector, "mean", self.group)
