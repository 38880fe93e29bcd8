"""Read and write checkpoints: the whole state of training in a folder, never half written, checked when it is read.

A folder holds ``state.json`` and the tensor files that it names, each ``<part>-<step>.safetensors``, with their
checksums; ``model``, whose names are those of the model's tensors, and ``optimizer`` are always among the parts. New
tensor files are written first, then ``state.json`` is replaced in one step, then the old tensor files are removed:
whenever a process dies, the folder holds one whole checkpoint. Where several are kept, the former ``state.json`` stays
as ``state-<step>.json``, with its tensor files, and a damaged checkpoint gives way to the one before it.

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
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from ember_ml import ops
from ember_ml.backend import tensor_pieces
from ember_ml.core.atomic_files import replaced, sync_folder
from ember_ml.core.folder_lock import FolderLock
from ember_ml.distributed.pieces import LazyTensors
from ember_ml.errors import CheckpointError
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
_LARGEST = 1 << 30
"""No state in JSON is larger than this; a damaged folder must not fill the memory."""
_TRIES = 10
_SUFFIX = ".safetensors"


def exists(path: str | PathLike[str]) -> bool:
    """Return whether the folder ``path`` holds a checkpoint, damaged or not."""
    folder = Path(path)
    return os.path.lexists(folder / _STATE) or bool(_older(folder))


def write(
    path: str | PathLike[str], tensors: Mapping[str, Mapping[str, Tensor]], state: Mapping[str, Any], keep: int = 1
) -> None:
    """Write parts of tensors, ``model`` and ``optimizer`` among them, and a plain state to the folder ``path``.

    The folder is made. An error leaves the checkpoint that was there. Several writers take turns. ``keep`` is the
    number of checkpoints that stay, this one included; those of later steps are of a run that was given up, and go.
    """
    with writing(path, keep) as folder:
        finish(folder, tensors, state, keep, {})


@contextmanager
def writing(path: str | PathLike[str], keep: int) -> Iterator[Path]:
    """A block in which this process alone writes to the folder ``path``, which is made; afterwards it is tidied.

    ``keep`` is the number of checkpoints that stay.
    """
    folder = Path(path)
    try:
        _make(folder)
        with FolderLock(folder):
            try:
                yield folder
            finally:
                _remove_unused(folder, keep)
    except OSError as error:
        reason = error.strerror or str(error)
        raise OSError(error.errno, f"the checkpoint cannot be written ({reason})", str(folder)) from error


class Stems(NamedTuple):
    """How the names of the files of pieces begin, and those of the notes of them.

    Args:
        parts: The beginnings of the names of the files, for each part.
        note: The beginning of the names of the notes.
    """

    parts: dict[str, str]
    note: str


def make_stems(folder: Path, parts: Iterable[str], step: int) -> Stems:
    """Return how the names of the files of pieces begin: as no other file's does.

    ``folder`` is that of the checkpoint, ``parts`` are the names of the parts, ``step`` is the number of steps so far.
    """
    found = {part: _fresh_name(folder, part, step).removesuffix(_SUFFIX) for part in parts}
    return Stems(found, f".written-{step}-{os.urandom(6).hex()}")


def write_pieces(
    path: str | PathLike[str], stems: Stems, rank: int, pieces: Mapping[str, Mapping[str, Any]]
) -> dict[str, dict[str, str]]:
    """Write the pieces of one process, one file for each part, and a note of them; return their names and checksums.

    ``path`` is the folder, ``stems`` are those of :func:`make_stems`, ``rank`` is that of the process, and ``pieces``
    has for each part the arrays by name, each with its region.
    """
    folder, files = Path(path), {}
    for part, stem in stems.parts.items():
        if pieces[part]:
            name = f"{stem}-r{rank}{_SUFFIX}"
            tensor_pieces.write_pieces(folder / name, pieces[part])
            files[part] = {"name": name, "sha256": _digest(folder / name)}
    with replaced(folder / f"{stems.note}-r{rank}.json", follow_links=False) as file:
        file.write(json.dumps(files).encode())
    return files


def read_note(folder: Path, stems: Stems, rank: int) -> dict[str, dict[str, str]] | None:
    """Return what :func:`write_pieces` of a process returned, once it has; None before.

    ``folder``, ``stems`` and ``rank`` are as there.
    """
    try:
        return json.loads((folder / f"{stems.note}-r{rank}.json").read_bytes())
    except FileNotFoundError:
        return None


def _make(folder: Path) -> None:
    if not folder.is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        sync_folder(folder.parent)


def finish(
    folder: Path,
    tensors: Mapping[str, Mapping[str, Tensor]],
    state: Mapping[str, Any],
    keep: int,
    pieces: Mapping[str, Sequence[Mapping[str, str]]],
) -> None:
    """Write the parts that are whole, and then the state, which makes them and the files of pieces a checkpoint.

    ``folder`` is one of :func:`writing`, ``tensors`` are the parts, ``state`` is plain data, ``keep`` is the number of
    checkpoints that stay, and ``pieces`` has for each part what :func:`write_pieces` of all processes returned.
    """
    files: dict[str, Any] = {part: {"pieces": list(entries)} for part, entries in pieces.items()}
    for part, named in tensors.items():
        name = _fresh_name(folder, part, int(state["steps"]))
        ops.save(folder / name, named)
        files[part] = {"name": name, "sha256": _digest(folder / name)}
    version = _VERSION_OF_PIECES if pieces else _VERSION
    document = {"format": _FORMAT, "version": version, "files": files, "state": state}
    text = json.dumps(document)
    if keep > 1:
        _set_aside(folder, int(state["steps"]))
    with replaced(folder / _STATE, follow_links=False) as file:
        file.write(f'{text[:-1]}, "sha256": "{_signature(text)}"}}'.encode())


def _set_aside(folder: Path, step: int) -> None:
    """Keep the present state beside the one that is about to replace it, unless it is damaged or of a later step."""
    try:
        former = _document(folder / _STATE)["state"].get("steps")
    except CheckpointError:
        return
    if type(former) is int and 0 <= former < step:
        with replaced(folder / f"state-{former}.json", follow_links=False) as file:
            file.write((folder / _STATE).read_bytes())


def _older(folder: Path) -> list[tuple[int, Path]]:
    """Return the steps and paths of the states that were set aside, the latest first."""
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    return sorted(((int(found[1]), folder / found[0]) for found in map(_OLDER.fullmatch, names) if found), reverse=True)


def _fresh_name(folder: Path, part: str, step: int) -> str:
    """Return an unused name for a tensor file: the present one must stay until the new checkpoint is whole."""
    taken = {re.sub(r"-r[0-9]+(?=\.safetensors$)", "", name) for name in os.listdir(folder)}
    name, count = f"{part}-{step}{_SUFFIX}", 1
    while name in taken:
        name, count = f"{part}-{step}-{count}{_SUFFIX}", count + 1
    return name


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _signature(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _remove_unused(folder: Path, keep: int) -> None:
    """Remove the states that are not kept, the tensor files that no state names, and what dead writers have left."""
    try:
        newest = _document(folder / _STATE)
        used, step = _names_in(newest), newest["state"].get("steps")
    except CheckpointError:
        if exists(folder):  # a damaged checkpoint may be repaired by hand, so keep its files
            return
        used, step = set[str](), 0
    left = keep - 1
    for steps, path in _older(folder):
        try:
            names = _names_in(_document(path)) if left > 0 and type(step) is int and steps < step else None
        except CheckpointError:
            names = None
        if names is None:
            with suppress(OSError):
                path.unlink()
        else:
            used |= names
            left -= 1
    with suppress(OSError):  # the checkpoint is whole; a file that is left over does no harm
        for name in os.listdir(folder):
            is_unused = _FILE.fullmatch(name) and name not in used
            if is_unused or _DRAFT.fullmatch(name) or _NOTE.fullmatch(name):
                with suppress(OSError):
                    os.unlink(folder / name)


def _names_in(document: Mapping[str, Any]) -> set[str]:
    return {entry["name"] for found in document["files"].values() for entry in found.get("pieces", [found])}


def read(path: str | PathLike[str]) -> tuple[dict[str, Mapping[str, Tensor]], dict[str, Any]]:
    """Return the parts of tensors and the plain state of the checkpoint in the folder ``path``.

    The tensors of a part in pieces are put together one by one, when they are asked for.
    One that is damaged gives way to the latest older one that is whole, with a warning. A folder without any raises
    ``CheckpointError``; nothing in it is ever executed. Where another process replaces the checkpoint meanwhile, it is
    the new one.
    """
    folder = Path(path)
    if not exists(folder):
        raise CheckpointError(f"{folder} holds no checkpoint: there is no {_STATE} in it")
    try:
        return _read_newest(folder)
    except CheckpointError as error:
        damage = error
    for step, older in _older(folder):
        with suppress(CheckpointError):
            contents = _read_state(folder, _document(older))
            warnings.warn(f"{damage}; the checkpoint of step {step} is read instead", stacklevel=2)
            return contents
    raise damage


def _read_newest(folder: Path) -> tuple[dict[str, Mapping[str, Tensor]], dict[str, Any]]:
    for _ in range(_TRIES):
        document = _document(folder / _STATE)
        try:
            return _read_state(folder, document)
        except CheckpointError as error:
            found = error
        if _document(folder / _STATE)["files"] == document["files"]:
            raise found
    raise CheckpointError(f"{folder} cannot be read: its checkpoint is replaced all the time")


def _read_state(folder: Path, document: Mapping[str, Any]) -> tuple[dict[str, Mapping[str, Tensor]], dict[str, Any]]:
    return {part: _tensors(folder, entry) for part, entry in document["files"].items()}, document["state"]


def _document(path: Path) -> dict[str, Any]:
    try:
        if not path.is_file():
            raise CheckpointError(f"{path} is no file")
        if path.stat().st_size > _LARGEST:
            raise CheckpointError(f"{path} is larger than any state of training")
        document = json.loads(path.read_bytes().decode())
        signature = document.pop("sha256", None) if isinstance(document, dict) else None
        is_whole = signature == _signature(json.dumps(document))  # spaces and line ends do not matter
    except CheckpointError:
        raise
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


def _tensors(folder: Path, entry: Mapping[str, Any]) -> Mapping[str, Tensor]:
    path = folder
    try:
        for found in entry.get("pieces", [entry]):
            path = folder / found["name"]
            if not path.is_file():  # a pipe or a device would never end
                raise CheckpointError(f"{path}, which {_STATE} names, is missing")
            if _digest(path) != found["sha256"]:
                raise CheckpointError(f"{path} is damaged: checksum mismatch with {_STATE}")
        if "pieces" in entry:
            joined = tensor_pieces.JoinedTensors([folder / found["name"] for found in entry["pieces"]])
            return LazyTensors(joined, lambda name: ops.asarray(joined[name]))
        loaded = ops.load(path)
    except CheckpointError:
        raise
    except (OSError, ValueError, TypeError) as error:
        raise CheckpointError(f"{path} cannot be read: {error}") from error
    if not isinstance(loaded, dict):
        raise CheckpointError(f"{path} holds a tensor without a name")
    return loaded
