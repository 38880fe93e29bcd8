"""Pieces of tensors: what one process has of a tensor that is split over several, and where it lies in the whole."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ember_ml.backend.devices import resolve_device
from ember_ml.backend.selection import active
from ember_ml.backend.tensor_pieces import JoinedTensors, Region
from ember_ml.core.dtypes import EmberDType
from ember_ml.core.lazy_tensors import LazyTensors
from ember_ml.typing import Tensor

__all__ = ["Piece", "SavedTensors", "vector_piece", "whole_piece"]


class Piece(NamedTuple):
    """A region of a tensor with its elements."""

    values: Tensor
    """Its elements in order, of any shape."""
    region: Region


class SavedTensors(LazyTensors):
    """The tensors of files, native to the active backend, each read when it is asked for."""

    shapes: Mapping[str, tuple[EmberDType, tuple[int, ...]]]
    """The dtype and shape of each tensor."""

    def __init__(self, files: JoinedTensors) -> None:
        super().__init__(files, lambda name: _make_native(files[name]))
        self.shapes, self._files = files.shapes, files

    def read_vector(self, spans: Mapping[str, tuple[int, int]], length: int) -> Tensor:
        """Return stretches of tensors one after another, as :meth:`JoinedTensors.read_vector` does."""
        return _make_native(self._files.read_vector(spans, length))


def _make_native(host: Any) -> Tensor:
    backend = active()
    return backend.from_host(host, resolve_device(backend, None))


def vector_piece(x: Any, shape: tuple[int, ...], span: tuple[int, int]) -> Piece:
    """Return a part of a vector, padded at its end, of all elements of a tensor: from a place on, so many of them."""
    start, count = span
    return Piece(x[:count], Region(shape, 0, ((0, shape[0]),) if shape else (), start))


def whole_piece(x: Any) -> Piece:
    """Return a tensor as one piece of itself."""
    shape = tuple(x.shape)
    return Piece(x, Region(shape, 0, ((0, shape[0]),) if shape else (), 0))
