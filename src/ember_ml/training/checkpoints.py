"""Read and write checkpoints: the whole state of training in a folder, never half written, checked when it is read.

A folder, or a place in an object store, holds ``state.json`` and the tensor files that it names, each
``<part>-<step>.safetensors``, with their checksums; ``model``, whose names are those of the model's tensors, and
``optimizer`` are always among the parts. New tensor files are written first, then ``state.json`` is replaced in one
step, then the old tensor files are removed: whenever a process dies, the folder holds one whole checkpoint. Where
several are kept, the former ``state.json`` stays as ``state-<step>.json``, with its tensor files, and a damaged
checkpoint gives way to the one before it.

A part of which each process has pieces is several files, ``<part>-<step>-r<rank>.safetensors``. A process that has
written its pieces leaves a note beside them, ``.written-<step>-<number>-r<rank>.json``, for the one that writes the
state.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from os import PathLike
from typing import Any, NamedTuple, TypeAlias

from ember_ml import ops
from ember_ml.backend import tensor_pieces
from ember_ml.backend.selection import active
from ember_ml.distributed.pieces import SavedTensors
from ember_ml.errors import CheckpointError
from ember_ml.training.checkpoint_stores import FolderStore, ObjectStore, open_store
from ember_ml.typing import Tensor

__all__ = ["Stems", "exists", "finish", "make_stems", "read", "read_note", "write", "write_pieces", "writing"]

_STATE = "state.json"
_FORMAT = "ember-ml checkpoint"
_VERSION = 2
_VERSION_OF_PIECES = 3
_READABLE = (1, 2, 3)
"""Version 1 had the losses of all steps in ``state.json``; 3 has parts in pieces, and is 2 without any."""
_NEEDED = ("model", "optimizer")
_PARTS = (*_NEEDED, "gradients", "callbacks", "history")
_FILE = re.compile(rf"({'|'.join(_PARTS)})-[0-9]{{1,20}}(-[0-9]{{1,9}})?(-r[0-9]{{1,9}})?\.safetensors")
_OLDER = re.compile(r"state-([0-9]{1,20})\.json")
_NOTE = re.compile(r"\.written-[0-9]{1,20}-[0-9a-f]{12}-r[0-9]{1,9}\.json")
_DRAFT = re.compile(rf"\.({_FILE.pattern}|{re.escape(_STATE)}|{_OLDER.pattern}|{_NOTE.pattern})\.[0-9a-f]{{12}}")
"""The name of a file while it is written; such a file is left behind where a process is killed."""
_TRIES = 10
_SUFFIX = ".safetensors"

Store: TypeAlias = FolderStore | ObjectStore


def exists(path: str | PathLike[str]) -> bool:
    """Return whether the folder or address ``path`` holds a checkpoint, damaged or not."""
    return _has_any(open_store(path))


def _has_any(store: Store) -> bool:
    return any(name == _STATE or _OLDER.fullmatch(name) for name in store.names())


def write(
    path: str | PathLike[str], tensors: Mapping[str, Mapping[str, Tensor]], state: Mapping[str, Any], keep: int = 1
) -> None:
    """Write parts of tensors, ``model`` and ``optimizer`` among them, and a plain state to the folder ``path``.

    It may be an address in an object store. The folder is made. An error leaves the checkpoint that was there. Several
    writers take turns. ``keep`` is the number of checkpoints that stay, this one included; those of later steps are of
    a run that was given up, and go.
    """
    with writing(path, keep) as store:
        finish(store, tensors, state, keep, {})


@contextmanager
def writing(path: str | PathLike[str], keep: int) -> Iterator[Store]:
    """A block in which this process alone writes to the folder ``path``, which is made; afterwards it is tidied.

    ``keep`` is the number of checkpoints that stay.
    """
    store = open_store(path)
    try:
        with store.writing():
            try:
                yield store
            finally:
                _remove_unused(store, keep)
    except OSError as error:
        reason = error.strerror or str(error)
        raise OSError(error.errno, f"the checkpoint cannot be written ({reason})", str(store)) from error


class Stems(NamedTuple):
    """How the names of the files of pieces begin, and those of the notes of them.

    Args:
        parts: The beginnings of the names of the files, for each part.
        note: The beginning of the names of the notes.
    """

    parts: dict[str, str]
    note: str


def make_stems(store: Store, parts: Iterable[str], step: int) -> Stems:
    """Return how the names of the files of pieces begin: as no other file's does.

    ``store`` is that of the checkpoint, ``parts`` are the names of the parts, ``step`` is the number of steps so far.
    """
    found = {part: _fresh_name(store, part, step).removesuffix(_SUFFIX) for part in parts}
    return Stems(found, f".written-{step}-{os.urandom(6).hex()}")


def write_pieces(
    path: str | PathLike[str], stems: Stems, rank: int, pieces: Mapping[str, Mapping[str, Any]]
) -> dict[str, dict[str, str]]:
    """Write the pieces of one process, one file for each part, and a note of them; return their names and checksums.

    ``path`` is the folder, ``stems`` are those of :func:`make_stems`, ``rank`` is that of the process, and ``pieces``
    has for each part the arrays by name, each with its region.
    """
    store, files = open_store(path), {}
    for part, stem in stems.parts.items():
        if pieces[part]:
            name = f"{stem}-r{rank}{_SUFFIX}"
            digest = store.write_tensors(name, partial(tensor_pieces.write_pieces, pieces=pieces[part]))
            files[part] = {"name": name, "sha256": digest}
    store.write(f"{stems.note}-r{rank}.json", json.dumps(files).encode())
    return files


def read_note(store: Store, stems: Stems, rank: int) -> dict[str, dict[str, str]] | None:
    """Return what :func:`write_pieces` of a process returned, once it has; None before.

    ``store`` is that of its ``path``, ``stems`` and ``rank`` are as there.
    """
    try:
        return json.loads(store.read(f"{stems.note}-r{rank}.json"))
    except FileNotFoundError:
        return None


def finish(
    store: Store,
    tensors: Mapping[str, Mapping[str, Tensor]],
    state: Mapping[str, Any],
    keep: int,
    pieces: Mapping[str, Sequence[Mapping[str, str]]],
) -> None:
    """Write the parts that are whole, and then the state, which makes them and the files of pieces a checkpoint.

    ``store`` is one of :func:`writing`, ``tensors`` are the parts, ``state`` is plain data, ``keep`` is the number of
    checkpoints that stay, and ``pieces`` has for each part what :func:`write_pieces` of all processes returned.
    """
    files: dict[str, Any] = {part: {"pieces": list(entries)} for part, entries in pieces.items()}
    for part, named in tensors.items():
        name = _fresh_name(store, part, int(state["steps"]))
        files[part] = {"name": name, "sha256": store.write_tensors(name, partial(ops.save, tensors=named))}
    version = _VERSION_OF_PIECES if pieces else _VERSION
    document = {"format": _FORMAT, "version": version, "files": files, "state": state}
    text = json.dumps(document)
    if keep > 1:
        _set_aside(store, int(state["steps"]))
    store.write(_STATE, f'{text[:-1]}, "sha256": "{_signature(text)}"}}'.encode())


def _set_aside(store: Store, step: int) -> None:
    """Keep the present state beside the one that is about to replace it, unless it is damaged or of a later step."""
    try:
        former = _document(store, _STATE)["state"].get("steps")
    except CheckpointError:
        return
    if type(former) is int and 0 <= former < step:
        store.write(f"state-{former}.json", store.read(_STATE))


def _older(names: Iterable[str]) -> list[tuple[int, str]]:
    """Return the steps and names of the states that were set aside, the latest first."""
    return sorted(((int(found[1]), found[0]) for found in map(_OLDER.fullmatch, names) if found), reverse=True)


def _fresh_name(store: Store, part: str, step: int) -> str:
    """Return an unused name for a tensor file: the present one must stay until the new checkpoint is whole."""
    taken = {re.sub(r"-r[0-9]+(?=\.safetensors$)", "", name) for name in store.names()}
    name, count = f"{part}-{step}{_SUFFIX}", 1
    while name in taken:
        name, count = f"{part}-{step}-{count}{_SUFFIX}", count + 1
    return name


def _signature(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _remove_unused(store: Store, keep: int) -> None:
    """Remove the states that are not kept, the tensor files that no state names, and what dead writers have left."""
    with suppress(OSError):  # the checkpoint is whole; a file that is left over does no harm
        found = store.names()
        try:
            newest = _document(store, _STATE)
            used, step = _names_in(newest), newest["state"].get("steps")
        except CheckpointError:
            if _has_any(store):  # a damaged checkpoint may be repaired by hand, so keep its files
                return
            used, step = set[str](), 0
        left = keep - 1
        for steps, older in _older(found):
            try:
                names = _names_in(_document(store, older)) if left > 0 and type(step) is int and steps < step else None
            except CheckpointError:
                names = None
            if names is None:
                with suppress(OSError):
                    store.remove(older)
            else:
                used |= names
                left -= 1
        for name in found:
            is_unused = _FILE.fullmatch(name) and name not in used
            if is_unused or _DRAFT.fullmatch(name) or _NOTE.fullmatch(name):
                with suppress(OSError):
                    store.remove(name)


def _names_in(document: Mapping[str, Any]) -> set[str]:
    return {entry["name"] for found in document["files"].values() for entry in found.get("pieces", [found])}


def read(path: str | PathLike[str]) -> tuple[dict[str, SavedTensors], dict[str, Any]]:
    """Return the parts of tensors and the plain state of the checkpoint in the folder ``path``.

    The tensors are read one by one, when they are asked for; their files stay open.
    One that is damaged gives way to the latest older one that is whole, with a warning. A folder without any raises
    ``CheckpointError``; nothing in it is ever executed. Where another process replaces the checkpoint meanwhile, it is
    the new one.
    """
    store = open_store(path)
    if not _has_any(store):
        raise CheckpointError(f"{store} holds no checkpoint: there is no {_STATE} in it")
    try:
        return _read_newest(store)
    except CheckpointError as error:
        damage = error
    for step, older in _older(store.names()):
        with suppress(CheckpointError):
            contents = _read_state(store, _document(store, older))
            warnings.warn(f"{damage}; the checkpoint of step {step} is read instead", stacklevel=2)
            return contents
    raise damage


def _read_newest(store: Store) -> tuple[dict[str, SavedTensors], dict[str, Any]]:
    for _ in range(_TRIES):
        document = _document(store, _STATE)
        try:
            return _read_state(store, document)
        except CheckpointError as error:
            found = error
        if _document(store, _STATE)["files"] == document["files"]:
            raise found
    raise CheckpointError(f"{store} cannot be read: its checkpoint is replaced all the time")


def _read_state(store: Store, document: Mapping[str, Any]) -> tuple[dict[str, SavedTensors], dict[str, Any]]:
    return {part: _tensors(store, entry) for part, entry in document["files"].items()}, document["state"]


def _document(store: Store, name: str) -> dict[str, Any]:
    path = store.path_of(name)
    try:
        document = json.loads(store.read(name).decode())
        signature = document.pop("sha256", None) if isinstance(document, dict) else None
        is_whole = signature == _signature(json.dumps(document))  # spaces and line ends do not matter
    except (CheckpointError, ConnectionError):
        raise
    except FileNotFoundError as error:
        raise CheckpointError(f"{path} is no file") from error
    except (OSError, ValueError, RecursionError) as error:
        raise CheckpointError(f"{path} is damaged: {error}") from error
    if not isinstance(document, dict) or document.get("format") != _FORMAT:
        raise CheckpointError(f"{path} is no checkpoint of Ember ML")
    if document.get("version") not in _READABLE:
        raise CheckpointError(f"{path} has version {document.get('version')!r:.80}, and this program reads {_VERSION}")
    if not is_whole:
        raise CheckpointError(f"{path} is damaged: checksum mismatch")
    files, state = document.get("files"), document.get("state")
    is_named = isinstance(files, dict) and {*_NEEDED} <= files.keys() and all(map(_is_file, files, files.values()))
    if not is_named or not isinstance(state, dict):
        raise CheckpointError(f"{path} is damaged: it does not name its tensor files")
    return document


def _is_file(part: str, entry: Any) -> bool:
    """Return whether an entry names a file of the folder itself, and its checksum; or several, of pieces."""
    if isinstance(entry, dict) and "pieces" in entry:
        pieces = entry["pieces"]
        return isinstance(pieces, list) and all("pieces" not in x and _is_file(part, x) for x in pieces)
    if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
        return False
    found = _FILE.fullmatch(entry["name"])
    return found is not None and found[1] == part and isinstance(entry.get("sha256"), str)


def _tensors(store: Store, entry: Mapping[str, Any]) -> SavedTensors:
    files = {found["name"]: found["sha256"] for found in entry.get("pieces", [entry])}
    try:
        with store.reading(files) as paths:
            found = tensor_pieces.JoinedTensors(paths, are_whole="pieces" not in entry)
    except (CheckpointError, ConnectionError):
        raise
    except (OSError, ValueError, TypeError) as error:
        raise CheckpointError(f"{store} cannot be read: {error}") from error
    backend = active()
    for name, (dtype, _) in found.shapes.items():
        if dtype not in backend.dtypes:
            raise CheckpointError(
                f"{store} cannot be read: its {name!r} is {dtype}, which {backend.name} does not have"
            )
    return SavedTensors(found)
