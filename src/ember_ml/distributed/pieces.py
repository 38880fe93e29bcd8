"""Pieces of tensors: what one process has of a tensor that is split over several, and where it lies in the whole."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, NamedTuple

from ember_ml.backend.tensor_pieces import Region
from ember_ml.typing import Tensor

__all__ = ["LazyTensors", "Piece", "vector_piece", "whole_piece"]


class Piece(NamedTuple):
    """A region of a tensor with its elements."""

    values: Tensor
    """Its elements in order, of any shape."""
    region: Region


class LazyTensors(Mapping[str, Any]):
    """Tensors by name, each made by ``make`` when it is asked for, so that few are in memory at once."""

    def __init__(self, names: Collection[str], make: Callable[[str], Any]) -> None:
        self._names, self._make = names, make

    def __getitem__(self, name: str) -> Any:
        if name not in self._names:
            raise KeyError(name)
        return self._make(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def vector_piece(x: Any, shape: tuple[int, ...], span: tuple[int, int]) -> Piece:
    """Return a part of a vector, padded at its end, of all elements of a tensor: from a place on, so many of them."""
    start, count = span
    return Piece(x[:count], Region(shape, 0, ((0, shape[0]),) if shape else (), start))


def whole_piece(x: Any) -> Piece:
    """Return a tensor as one piece of itself."""
    shape = tuple(x.shape)
    return Piece(x, Region(shape, 0, ((0, shape[0]),) if shape else (), 0))
