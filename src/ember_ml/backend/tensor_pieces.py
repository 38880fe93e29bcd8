"""Files of pieces of tensors: each process writes those that it has, and readers put whole tensors together.

A file of pieces is a file of tensors; the text ``pieces`` among its metadata says where each lies in its whole tensor.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ember_ml.backend.host_arrays import host_dtypes
from ember_ml.backend.safetensors import Contents, MappedTensors, write_tensors
from ember_ml.core.dtypes import EmberDType

__all__ = ["JoinedTensors", "Region", "write_pieces"]

_INDEX = "pieces"


class Region(NamedTuple):
    """A part of a tensor: what lies within ``bounds`` along ``axis``, as one vector, and of that from ``start`` on."""

    shape: tuple[int, ...]
    """Of the whole tensor."""
    axis: int
    bounds: tuple[tuple[int, int], ...]
    """Where stretches of the axis begin and end, which lie side by side in the vector; none for a 0-d tensor."""
    start: int

    @property
    def local_shape(self) -> tuple[int, ...]:
        """The shape of what lies within the bounds."""
        if not self.shape:
            return ()
        length = sum(end - begin for begin, end in self.bounds)
        return (*self.shape[: self.axis], length, *self.shape[self.axis + 1 :])


def write_pieces(path: str | os.PathLike[str], pieces: Mapping[str, tuple[np.ndarray, Region]]) -> None:
    """Write pieces, by the names of their tensors, to a file in one step."""
    index = json.dumps({name: list(region) for name, (_, region) in pieces.items()})
    write_tensors(path, Contents({name: values for name, (values, _) in pieces.items()}, {_INDEX: index}, False))


class JoinedTensors(Mapping[str, np.ndarray]):
    """The tensors of files of pieces, by name, each put together when it is asked for: few are in memory at once.

    The files stay open, so that removing or replacing them changes nothing. Pieces that do not make whole tensors raise
    ``ValueError``.

    Args:
        paths: The files.
        are_whole: Whether they have whole tensors, and no pieces.
    """

    shapes: dict[str, tuple[EmberDType, tuple[int, ...]]]
    """The dtype and shape of each tensor."""

    def __init__(self, paths: Sequence[str | os.PathLike[str]], are_whole: bool = False) -> None:
        self._pieces: dict[str, list[_Stored]] = {}
        for path in paths:
            file = MappedTensors(path)
            if file.is_single:
                raise ValueError(f"{os.fspath(path)} holds a tensor without a name")
            shapes = file.shapes()
            index = _index_whole(shapes) if are_whole else _read_index(path, file.metadata)
            if index.keys() != shapes.keys():
                raise ValueError(f"{os.fspath(path)} does not say where each of its pieces lies")
            for name, region in index.items():
                dtype, shape = shapes[name]
                self._pieces.setdefault(name, []).append(_Stored(file, region, dtype, prod(shape)))
        self.shapes = {}
        for name, pieces in self._pieces.items():
            _check_cover(name, pieces)
            self.shapes[name] = pieces[0].dtype, pieces[0].region.shape

    def __getitem__(self, name: str) -> np.ndarray:
        dtype, shape = self.shapes[name]
        whole = np.empty(shape, host_dtypes[dtype])
        for region, pieces in self._regions(name).items():
            if region.local_shape == shape:
                _join(name, pieces, 0, whole.reshape(-1))
                continue
            local = np.empty(region.local_shape, whole.dtype)
            _join(name, pieces, 0, local.reshape(-1))
            before, first = (slice(None),) * region.axis, 0
            for begin, end in region.bounds:
                whole[(*before, slice(begin, end))] = local[(*before, slice(first, first + end - begin))]
                first += end - begin
        return whole

    def read_vector(self, spans: Mapping[str, tuple[int, int]], length: int) -> np.ndarray:
        """Return stretches of tensors of one dtype one after another, and zeros up to ``length`` elements.

        ``spans`` has the places at which the stretches begin and end, among all elements of a tensor in order. Nothing
        else is read where the pieces themselves are such stretches.
        """
        dtypes = {self.shapes[name][0] for name in spans}
        if len(dtypes) != 1:
            raise ValueError(f"{', '.join(spans)} have the dtypes {', '.join(sorted(map(str, dtypes)))}, not one")
        vector, place = np.zeros(length, host_dtypes[dtypes.pop()]), 0
        for name, (low, high) in spans.items():
            regions = self._regions(name)
            part = vector[place : place + high - low]
            if {region.local_shape for region in regions} == {self.shapes[name][1]}:
                _join(name, [piece for pieces in regions.values() for piece in pieces], low, part)
            elif low < high:
                part[:] = self[name].reshape(-1)[low:high]
            place += high - low
        return vector

    def _regions(self, name: str) -> dict[Region, list[_Stored]]:
        """Return the pieces of a tensor that are parts of the same vector."""
        found: dict[Region, list[_Stored]] = {}
        for piece in self._pieces[name]:
            found.setdefault(piece.region._replace(start=0), []).append(piece)
        return found

    def __contains__(self, name: object) -> bool:
        return name in self._pieces  # that of Mapping would read the tensor

    def __iter__(self) -> Iterator[str]:
        return iter(self._pieces)

    def __len__(self) -> int:
        return len(self._pieces)


def _join(name: str, pieces: Sequence[_Stored], low: int, vector: np.ndarray) -> None:
    """Fill ``vector`` from its pieces of a vector, of which it has the elements from the place ``low`` on."""
    high = low + vector.size
    for piece in pieces:
        start, end = piece.region.start, piece.region.start + piece.size
        begin, stop = max(start, low), min(end, high)
        if begin < stop:
            piece.file.read_into(name, begin - start, vector[begin - low : stop - low])


class _Stored(NamedTuple):
    """A piece in a file."""

    file: MappedTensors
    region: Region
    dtype: EmberDType
    size: int


def _index_whole(shapes: Mapping[str, tuple[EmberDType, tuple[int, ...]]]) -> dict[str, Region]:
    return {name: Region(shape, 0, ((0, shape[0]),) if shape else (), 0) for name, (_, shape) in shapes.items()}


def _read_index(path: str | os.PathLike[str], metadata: Mapping[str, str]) -> dict[str, Region]:
    try:
        return {name: _read_region(*fields) for name, fields in json.loads(metadata[_INDEX]).items()}
    except (LookupError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"{os.fspath(path)} does not say where its pieces lie ({error!r:.80})") from error


def _read_region(shape: Any, axis: Any, bounds: Any, start: Any) -> Region:
    region = Region(tuple(shape), axis, tuple([(begin, end) for begin, end in bounds]), start)
    ends = [number for pair in region.bounds for number in pair]
    if not all(type(number) is int and number >= 0 for number in [*region.shape, axis, start, *ends]):
        raise ValueError("a place is a number from 0 up")
    if bool(ends) != bool(region.shape) or ends != sorted(ends) or (ends and ends[-1] > region.shape[axis]):
        raise ValueError("a piece lies outside its tensor")
    return region


def _check_cover(name: str, pieces: Sequence[_Stored]) -> None:
    """Raise unless the pieces are those of one tensor, and each of its elements is in one of them."""
    first = pieces[0]
    spans: dict[Region, list[tuple[int, int]]] = {}
    for piece in pieces:
        begin = piece.region.start
        spans.setdefault(piece.region._replace(start=0), []).append((begin, begin + piece.size))
    stretches = [pair for region in spans for pair in region.bounds]
    length = first.region.shape[first.region.axis] if first.region.shape else 0
    is_whole = (
        {(piece.region.shape, piece.region.axis, piece.dtype) for piece in pieces}
        == {(first.region.shape, first.region.axis, first.dtype)}
        and all(_is_covered(found, prod(region.local_shape)) for region, found in spans.items())
        and _is_covered(stretches, length)
    )
    if not is_whole:
        raise ValueError(f"the pieces of {name!r:.80} do not make one tensor")


def _is_covered(stretches: Sequence[tuple[int, int]], length: int) -> bool:
    """Return whether stretches, in some order, follow each other from 0 to ``length``."""
    ends = [0, *(number for pair in sorted(stretches) for number in pair), length]
    return ends[::2] == ends[1::2]
