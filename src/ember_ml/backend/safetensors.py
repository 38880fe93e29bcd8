"""Read and write files of tensors in the safetensors format, without another package.

A file is the length of its header in 8 bytes, the header in JSON (the dtype, shape and place of each tensor, and text
about the file), and the tensors' bytes one after the other. Nothing in it can be executed. A file is written under
another name and then renamed, so it is never incomplete. :func:`read_tensors` reads it into memory and does not map it:
a file that another program overwrites in place would end every process that has it mapped. :class:`MappedTensors` maps
the large tensors of a model, which would otherwise be in memory twice while they are loaded.
"""

from __future__ import annotations

import json
import math
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO, Self, TypeAlias

import numpy as np

from ember_ml.backend.host_arrays import host_dtypes
from ember_ml.backend.mapped_files import MappedFile
from ember_ml.core import dtypes as dt
from ember_ml.core.atomic_files import replaced
from ember_ml.core.dtypes import EmberDType, as_dtype
from ember_ml.errors import UnsupportedDType

__all__ = ["Contents", "MappedTensors", "read_tensors", "write_tensors", "write_to"]

_DTYPES: dict[str, EmberDType] = {
    "BOOL": dt.bool_,
    "I8": dt.int8,
    "I16": dt.int16,
    "I32": dt.int32,
    "I64": dt.int64,
    "U8": dt.uint8,
    "U16": dt.uint16,
    "U32": dt.uint32,
    "U64": dt.uint64,
    "F16": dt.float16,
    "BF16": dt.bfloat16,
    "F32": dt.float32,
    "F64": dt.float64,
    "C64": dt.complex64,
}
_CODES = {dtype: code for code, dtype in _DTYPES.items()}
_TEXT = "__metadata__"
_OWN = "ember_ml"
"""The entry among the texts that says what the format itself cannot."""
_LONGEST_HEADER = 100_000_000  # as other readers have it
_MOST_AXES = 64
_LARGEST_SIZE = 2**63 - 1
_SMALLEST_MAPPED = 1 << 16  # bytes; so little is read sooner than it is mapped and given back

_Place: TypeAlias = tuple[EmberDType, tuple[int, ...], int, int]
"""Dtype and shape of a tensor, and where its bytes begin and end."""


@dataclass(frozen=True, slots=True)
class Contents:
    """The contents of a file: tensors by name in the order in which they were saved, and texts by name."""

    tensors: dict[str, np.ndarray]
    metadata: dict[str, str]
    is_single: bool
    """Whether one tensor without a name was saved."""


def write_tensors(path: str | os.PathLike[str], contents: Contents, follow_links: bool = True) -> None:
    """Write a file in one step: whoever reads ``path`` finds the old file or the new one, never a part of it.

    A symbolic link stays and what it names is replaced, unless ``follow_links`` is False: then the link itself is.
    """
    with replaced(path, follow_links) as file:
        write_to(file, contents)


def write_to(file: BinaryIO, contents: Contents) -> None:
    """Write the bytes of a file."""
    header, tensors = _describe(contents)
    file.write(len(header).to_bytes(8, "little"))
    file.write(header)
    for tensor in tensors:
        if tensor.size:
            file.write(np.ascontiguousarray(tensor).reshape(-1).view(np.uint8).data)


def _describe(contents: Contents) -> tuple[bytes, list[np.ndarray]]:
    """Return the header, and the tensors in the order of their bytes: wide dtypes first, to align each to its size."""
    stored, split = {}, []
    for name, tensor in contents.tensors.items():
        _check_name(name)
        if as_dtype(tensor.dtype) is dt.complex128:  # which the format does not have: the parts as a last axis of two
            split.append(name)
            tensor = np.ascontiguousarray(tensor).reshape(*tensor.shape, 1).view(np.float64)
        stored[name] = tensor
    places, end = {}, 0
    order = sorted(stored, key=lambda name: -stored[name].itemsize)
    for name in order:
        places[name] = [end, end + stored[name].nbytes]
        end += stored[name].nbytes
    header: dict[str, Any] = {}
    notes = {"single": True} if contents.is_single else {}
    text = _check_text(contents.metadata) | _own_text({**notes, **({"complex128": split} if split else {})})
    if text:
        header[_TEXT] = text
    for name, tensor in stored.items():
        code = _CODES[as_dtype(tensor.dtype)]
        header[name] = {"dtype": code, "shape": list(tensor.shape), "data_offsets": places[name]}
    encoded = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    return encoded + b" " * (-len(encoded) % 8), [stored[name] for name in order]


def _check_name(name: Any) -> None:
    if not isinstance(name, str):
        raise TypeError(f"the name of a tensor in a file is text, not {name!r}")
    if name == _TEXT:
        raise ValueError(f"no tensor in a file can be called {_TEXT!r}, which stands for the metadata")


def _own_text(notes: dict[str, Any]) -> dict[str, str]:
    return {_OWN: json.dumps(notes)} if notes else {}


def _check_text(metadata: Mapping[str, str]) -> dict[str, str]:
    for key, value in metadata.items():
        if not isinstance(key, str) or not isinstance(value, str):
            raise TypeError(f"the metadata of a file are texts by name, not {key!r}: {value!r}; json.dumps makes text")
    if _OWN in metadata:
        raise ValueError(f"the name {_OWN!r} in the metadata of a file is taken; use another one")
    return dict(metadata)


def read_tensors(path: str | os.PathLike[str]) -> Contents:
    """Read what a file holds into memory."""
    name = os.fspath(path)
    with _open(name) as file:
        header = _read_header(name, file)
        tensors = {key: _read(name, key, file, header.begin, place) for key, place in header.places.items()}
    for key, tensor in tensors.items():
        _check_booleans(name, key, tensor)
    return Contents(tensors, header.text, header.is_single)


class MappedTensors:
    """The tensors of a file, each read or mapped when it is asked for; the file stays open until ``close``.

    Large tensors are parts of a private mapping: they fill no memory until they are used, what is written to one does
    not reach the file, and each leaves memory when nothing refers to it. The file must not be overwritten in place as
    long as they are used. Replacing it by another one, as :func:`write_tensors` does, changes nothing for them.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = os.fspath(path)
        self._file = _open(self._path)
        try:
            header = _read_header(self._path, self._file)
        except BaseException:
            self._file.close()
            raise
        self._begin, self._places = header.begin, header.places
        self._mapped = MappedFile(self._file)
        self.metadata: dict[str, str] = header.text
        """Texts by name."""
        self.is_single: bool = header.is_single
        """Whether it holds one tensor without a name."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; what has been read from it stays."""
        self._file.close()

    def __del__(self) -> None:
        if hasattr(self, "_file"):  # it could be opened
            self.close()

    def shapes(self) -> dict[str, tuple[EmberDType, tuple[int, ...]]]:
        """Return the dtype and shape of each tensor by name."""
        return {key: (dtype, shape) for key, (dtype, shape, _, _) in self._places.items()}

    def read(self, key: str) -> np.ndarray:
        """Return a tensor, which may be changed: the file is not."""
        place = dtype, shape, start, end = self._places[key]
        first = self._begin + start
        if end - start < _SMALLEST_MAPPED or first % dtype.itemsize or self._mapped.is_taken(first):
            tensor = _read(self._path, key, self._file, self._begin, place)
        else:
            try:
                tensor = self._mapped.take(first, self._begin + end, host_dtypes[dtype]).reshape(shape)
            except EOFError as error:  # it has become shorter since its header was read
                raise _damage_error(self._path, f"it ends within the tensor {key!r}") from error
        _check_booleans(self._path, key, tensor)
        return tensor

    def read_into(self, key: str, first: int, vector: np.ndarray) -> None:
        """Read elements of a tensor, from the place ``first`` on, into a vector of its dtype; nothing is mapped."""
        dtype, _, start, _ = self._places[key]
        _fill(self._path, key, self._file, self._begin + start + first * dtype.itemsize, vector)
        _check_booleans(self._path, key, vector)


@dataclass(frozen=True, slots=True)
class _Header:
    begin: int
    """The byte of the file at which the first tensor begins."""
    places: dict[str, _Place]
    text: dict[str, str]
    is_single: bool


def _open(path: str) -> BinaryIO:
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise _damage_error(path, "it is no plain file")
    return open(path, "rb")


def _read_header(path: str, file: BinaryIO) -> _Header:
    size = os.fstat(file.fileno()).st_size
    if size < 8:
        raise _damage_error(path, f"it has {size} bytes")
    length = int.from_bytes(file.read(8), "little")
    if length > min(size - 8, _LONGEST_HEADER):
        raise _damage_error(path, f"its header would have {length} bytes, and the file has {size}")
    header = _parse_header(path, file.read(length))
    text = header.pop(_TEXT, None) or {}  # MLX writes null for none
    if not isinstance(text, dict) or not all(isinstance(value, str) for value in text.values()):
        raise _damage_error(path, "its metadata are not texts by name")
    notes = _notes(path, text.pop(_OWN, "{}"))
    places = {key: _place(path, key, entry) for key, entry in header.items()}
    _check_places(path, places, size - 8 - length)
    for key in notes["complex128"]:
        places[key] = _join_parts(path, key, places.get(key))
    if notes["single"] and len(places) != 1:
        raise _damage_error(path, "it says that it holds one tensor without a name")
    return _Header(8 + length, places, text, notes["single"])


def _check_booleans(path: str, key: str, tensor: np.ndarray) -> None:
    if tensor.dtype == np.bool_ and tensor.size and tensor.view(np.uint8).max() > 1:
        raise _damage_error(path, f"the tensor {key!r} holds bytes that are neither True nor False")


def _damage_error(path: str, reason: str) -> ValueError:
    return ValueError(f"{path} is no safetensors file, or a damaged one: {reason}")


def _parse_header(path: str, encoded: bytes) -> dict[str, Any]:
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            raise ValueError("a name stands in its header twice")
        return found

    try:
        header = json.loads(encoded.decode(), object_pairs_hook=once)
    except (ValueError, RecursionError) as error:
        raise _damage_error(path, f"its header cannot be read ({error})") from error
    if not isinstance(header, dict):
        raise _damage_error(path, "its header is not a table")
    return header


def _notes(path: str, encoded: str) -> dict[str, Any]:
    """Return the notes that :func:`write_tensors` added."""
    try:
        notes = {"single": False, "complex128": [], **json.loads(encoded)}
    except (TypeError, ValueError, RecursionError) as error:
        raise _damage_error(path, f"its entry {_OWN!r} cannot be read ({error})") from error
    split = notes["complex128"]
    is_list = isinstance(split, list) and all(isinstance(key, str) for key in split)
    if type(notes["single"]) is not bool or not is_list:
        raise _damage_error(path, f"its entry {_OWN!r} says {encoded[:80]!r}")
    return notes


def _place(path: str, key: str, entry: Any) -> _Place:
    """Dtype, shape, start and end of a tensor, as the header says them."""
    if not isinstance(entry, dict) or not {"dtype", "shape", "data_offsets"} <= entry.keys():
        raise _damage_error(path, f"the header does not describe the tensor {key!r}")
    shape, places = entry["shape"], entry["data_offsets"]
    if not _are_sizes(shape) or len(shape) > _MOST_AXES or not _are_sizes(places) or len(places) != 2:
        raise _damage_error(path, f"the tensor {key!r} has the shape {shape!r:.80} and the place {places!r:.80}")
    dtype = _DTYPES.get(entry["dtype"]) if isinstance(entry["dtype"], str) else None
    if dtype is None:
        raise UnsupportedDType(
            f"the tensor {key!r} in {path} has the dtype {entry['dtype']!r:.80}, which Ember ML does not have"
        )
    if math.prod(shape) * dtype.itemsize != places[1] - places[0]:
        raise _damage_error(path, f"the tensor {key!r}, {dtype}{tuple(shape)}, has {places[1] - places[0]} bytes")
    return dtype, tuple(shape), places[0], places[1]


def _are_sizes(values: Any) -> bool:
    if not isinstance(values, list):
        return False
    for value in values:  # noqa: SIM110 - a generator takes twice as long for two numbers, and there are many such pairs
        if type(value) is not int or not 0 <= value <= _LARGEST_SIZE:
            return False
    return True


def _check_places(path: str, places: Mapping[str, _Place], size: int) -> None:
    """Check that the tensors follow each other and fill the file."""
    end = 0
    for key, (_, _, start, stop) in sorted(places.items(), key=lambda item: item[1][2:]):
        if start != end:
            raise _damage_error(path, f"the tensor {key!r} starts at byte {start}, where the one before ends at {end}")
        end = stop
    if end != size:
        raise _damage_error(path, f"its tensors have {end} bytes, and {size} follow its header")


def _read(path: str, key: str, file: BinaryIO, begin: int, place: _Place) -> np.ndarray:
    dtype, shape, start, _ = place
    try:
        tensor = np.empty(shape, host_dtypes[dtype])
    except ValueError as error:  # an empty tensor can have axes that are too long for an array
        raise _damage_error(path, f"it has a tensor that no array can hold ({error})") from error
    _fill(path, key, file, begin + start, tensor.reshape(-1))
    return tensor


def _fill(path: str, key: str, file: BinaryIO, place: int, vector: np.ndarray) -> None:
    """Read the bytes of a vector from a place in the file on."""
    if vector.size:
        file.seek(place)
        if file.readinto(vector.view(np.uint8).data) != vector.nbytes:  # type: ignore[attr-defined]
            raise _damage_error(path, f"it ends within the tensor {key!r}")


def _join_parts(path: str, key: str, place: _Place | None) -> _Place:
    """Return the place of complex numbers, whose real and imaginary parts were saved as a last axis of two."""
    if place is None or place[0] is not dt.float64 or not place[1] or place[1][-1] != 2:
        raise _damage_error(path, f"{key!r} is no tensor of the parts of complex numbers")
    return dt.complex128, place[1][:-1], *place[2:]
