"""A mesh of processes or devices: over which of its axes batches, parameters and layers are split."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

from ember_ml.errors import LaunchError

__all__ = ["AXES", "Mesh", "Place"]

AXES: tuple[str, ...] = ("data", "shard", "context", "tensor")
"""The axes, the outermost first: neighbouring ranks, which are on one machine, share layers."""


class Place(NamedTuple):
    """The place of a rank in a mesh, along each axis."""

    data: int
    shard: int
    context: int
    tensor: int


class Mesh:
    """Processes or devices in a grid of four axes: ``data`` times ``shard`` times ``context`` times ``tensor``.

    Batches are split over ``data`` and ``shard``, and the sequences in them over ``context``. Along ``data`` and
    ``context`` everything else is equal; along ``shard`` each has a part of the parameters and of the optimizer's
    state, which is gathered while it is computed with; along ``tensor`` each computes a part of the layers that a plan
    splits, as a few heads of an attention, on the same samples.

    Args:
        data: The length of the first axis; None: as many as are left.
        shard: The number of parts of parameters and optimizer state.
        tensor: The number of parts of layers.
        context: The number of parts of sequences.

    >>> from ember_ml import distributed
    >>> mesh = distributed.Mesh(shard=2, tensor=2).fit(8)
    >>> mesh, mesh.place(5)
    (Mesh(data=2, shard=2, tensor=2, context=1), Place(data=1, shard=0, context=0, tensor=1))
    """

    data: int | None
    shard: int
    tensor: int
    context: int

    def __init__(self, data: int | None = None, shard: int = 1, tensor: int = 1, context: int = 1) -> None:
        for name, length in zip(AXES, (data, shard, context, tensor), strict=True):
            if (length is not None or name != "data") and not (type(length) is int and length > 0):
                raise ValueError(f"the axis {name} of a mesh has a length from 1 up, not {length!r}")
        self.data, self.shard, self.tensor, self.context = data, shard, tensor, context

    def fit(self, count: int) -> Mesh:
        """Return the mesh for ``count`` processes or devices; ``LaunchError`` where it is for another number.

        Args:
            count: How many there are.
        """
        inner = self.shard * self.tensor * self.context
        data = count // inner if self.data is None else self.data
        if data * inner != count:
            raise LaunchError(f"{self} does not fit {count} processes or devices")
        return Mesh(data, self.shard, self.tensor, self.context)

    @property
    def lengths(self) -> tuple[int, ...]:
        """The lengths of the axes, in their order, of a mesh that knows them all."""
        if self.data is None:
            raise ValueError(f"{self} has no length of its axis data yet: fit(count) gives one")
        return self.data, self.shard, self.context, self.tensor

    @property
    def size(self) -> int:
        """The number of processes or devices."""
        return prod(self.lengths)

    def place(self, rank: int) -> Place:
        """Return the place of a rank: neighbouring ranks are neighbours along ``tensor``.

        Args:
            rank: From 0.
        """
        _, shard, context, tensor = self.lengths
        outer = rank // (context * tensor)
        return Place(outer // shard, outer % shard, rank // tensor % context, rank % tensor)

    def groups(self, axes: Sequence[str]) -> list[list[int]]:
        """Return the ranks in groups that differ in their places along ``axes`` alone.

        Args:
            axes: Names of axes.

        >>> from ember_ml import distributed
        >>> distributed.Mesh(data=2, tensor=2).groups(["tensor"])
        [[0, 1], [2, 3]]
        """
        unknown = [axis for axis in axes if axis not in AXES]
        if unknown:
            raise ValueError(f"a mesh has the axes {', '.join(AXES)}, and not {unknown[0]!r}")
        found: dict[tuple[int, ...], list[int]] = {}
        for rank in range(self.size):
            key = tuple(at for axis, at in zip(AXES, self.place(rank), strict=True) if axis not in axes)
            found.setdefault(key, []).append(rank)
        return list(found.values())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mesh) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((self.data, self.shard, self.tensor, self.context))

    def __repr__(self) -> str:
        return f"Mesh(data={self.data}, shard={self.shard}, tensor={self.tensor}, context={self.context})"
