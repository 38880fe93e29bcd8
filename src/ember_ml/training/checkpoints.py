"""Checkpoints: the whole state of training in a folder, never half written, checked when it is read.

A folder holds ``state.json`` and the tensor files that it names, each ``<part>-<step>.safetensors``, with their
checksums; ``model``, whose names are those of the model's tensors, and ``optimizer`` are always among the parts. New
tensor files are written first, then ``state.json`` is replaced in one step, then the old tensor files are removed:
whenever a process dies, the folder holds one whole checkpoint.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from collections.abc import Mapping
from contextlib import suppress
from os import PathLike
from pathlib import Path
from typing import Any

from ember_ml import ops
from ember_ml.core.atomic_files import replaced, sync_folder
from ember_ml.errors import CheckpointError
from ember_ml.typing import Tensor

try:
    import fcntl
except ImportError:  # not a Unix system
    fcntl = None

__all__ = ["exists", "read", "write"]

_STATE = "state.json"
_FORMAT = "ember-ml checkpoint"
_VERSION = 1
_NEEDED = ("model", "optimizer")
_PARTS = (*_NEEDED, "gradients", "callbacks")
_FILE = re.compile(rf"({'|'.join(_PARTS)})-[0-9]{{1,20}}(-[0-9]{{1,9}})?\.safetensors")
_DRAFT = re.compile(rf"\.({_FILE.pattern}|{re.escape(_STATE)})\.[0-9a-f]{{12}}")
"""The suffix of a file while it is written; such a file is left behind where a process is killed."""
_LARGEST = 1 << 30
"""No state in JSON is larger than this; a damaged folder must not fill the memory."""
_TRIES = 10
_PATIENCE, _PAUSE = 60.0, 0.02  # seconds to wait for other writers, in all and between two looks


def exists(path: str | PathLike[str]) -> bool:
    """Return whether the folder ``path`` holds a checkpoint, damaged or not."""
    return os.path.lexists(Path(path) / _STATE)


def write(path: str | PathLike[str], tensors: Mapping[str, Mapping[str, Tensor]], state: Mapping[str, Any]) -> None:
    """Write parts of tensors, ``model`` and ``optimizer`` among them, and a plain state to the folder ``path``.

    The folder is made. An error leaves the checkpoint that was there. Several writers take turns.
    """
    folder = Path(path)
    try:
        _make(folder)
        with _Lock(folder):
            try:
                _write(folder, tensors, state)
            finally:
                _remove_unused(folder)
    except OSError as error:
        reason = error.strerror or str(error)
        raise OSError(error.errno, f"the checkpoint cannot be written ({reason})", str(folder)) from error


class _Lock:
    """Lets no other process or thread write to a folder meanwhile, where the file system has locks.

    The lock ends with this object at the latest, and with the process, however that ends.
    """

    _number: int | None = None

    def __init__(self, folder: Path) -> None:
        self._number = os.open(folder, os.O_RDONLY)

    def __enter__(self) -> None:
        if fcntl is None or self._number is None:
            return
        until = time.monotonic() + _PATIENCE
        while True:
            try:
                fcntl.flock(self._number, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                if time.monotonic() > until:  # any process that may read the folder can lock it forever
                    raise TimeoutError(
                        error.errno, f"another process has locked the folder for {_PATIENCE:.0f} s"
                    ) from error
                time.sleep(_PAUSE)
            except OSError:  # a file system without locks
                return
            else:
                return

    def __exit__(self, *exception: object) -> None:
        if fcntl is not None and self._number is not None:
            with suppress(OSError):
                fcntl.flock(self._number, fcntl.LOCK_UN)

    def __del__(self) -> None:
        if self._number is not None:
            os.close(self._number)


def _make(folder: Path) -> None:
    if not folder.is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        sync_folder(folder.parent)


def _write(folder: Path, tensors: Mapping[str, Mapping[str, Tensor]], state: Mapping[str, Any]) -> None:
    files = {}
    for part, named in tensors.items():
        name = _fresh_name(folder, part, int(state["steps"]))
        ops.save(folder / name, named)
        files[part] = {"name": name, "sha256": _digest(folder / name)}
    document = {"format": _FORMAT, "version": _VERSION, "files": files, "state": state}
    text = json.dumps(document)
    with replaced(folder / _STATE) as file:
        file.write(f'{text[:-1]}, "sha256": "{_signature(text)}"}}'.encode())


def _fresh_name(folder: Path, part: str, step: int) -> str:
    """Return an unused name for a tensor file: the present one must stay until the new checkpoint is whole."""
    name, count = f"{part}-{step}.safetensors", 1
    while os.path.lexists(folder / name):
        name, count = f"{part}-{step}-{count}.safetensors", count + 1
    return name


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _signature(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _remove_unused(folder: Path) -> None:
    """Remove the tensor files that ``state.json`` does not name, and those that killed writers left behind."""
    try:
        used = {entry["name"] for entry in _document(folder / _STATE)["files"].values()}
    except CheckpointError:
        if exists(folder):  # a damaged checkpoint may be repaired by hand, so keep its files
            return
        used = set()
    with suppress(OSError):  # the checkpoint is whole; a file that is left over does no harm
        for name in os.listdir(folder):
            if (_FILE.fullmatch(name) and name not in used) or _DRAFT.fullmatch(name):
                with suppress(OSError):
                    os.unlink(folder / name)


def read(path: str | PathLike[str]) -> tuple[dict[str, dict[str, Tensor]], dict[str, Any]]:
    """Return the parts of tensors and the plain state of the checkpoint in the folder ``path``.

    A folder without one, or with one that is damaged, raises ``CheckpointError``; nothing in it is ever executed. Where
    another process replaces the checkpoint meanwhile, it is the new one.
    """
    folder = Path(path)
    if not exists(folder):
        raise CheckpointError(f"{folder} holds no checkpoint: there is no {_STATE} in it")
    for _ in range(_TRIES):
        document = _document(folder / _STATE)
        try:
            tensors = {part: _tensors(folder, entry) for part, entry in document["files"].items()}
            return tensors, document["state"]
        except CheckpointError as error:
            found = error
        if _document(folder / _STATE)["files"] == document["files"]:
            raise found
    raise CheckpointError(f"{folder} cannot be read: its checkpoint is replaced all the time")


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
    if document.get("version") != _VERSION:
        raise CheckpointError(f"{path} has version {document.get('version')!r:.80}, and this program reads {_VERSION}")
    if not is_whole:
        raise CheckpointError(f"{path} is damaged: its checksum is not the one of what it says")
    files, state = document.get("files"), document.get("state")
    is_named = isinstance(files, dict) and {*_NEEDED} <= files.keys() and all(map(_is_file, files, files.values()))
    if not is_named or not isinstance(state, dict):
        raise CheckpointError(f"{path} is damaged: it does not name its tensor files")
    return document


def _is_file(part: str, entry: Any) -> bool:
    """Return whether an entry names a file of the folder itself, and its checksum."""
    if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
        return False
    found = _FILE.fullmatch(entry["name"])
    return found is not None and found[1] == part and isinstance(entry.get("sha256"), str)


def _tensors(folder: Path, entry: Mapping[str, str]) -> dict[str, Tensor]:
    path = folder / entry["name"]
    try:
        if not path.is_file():  # a pipe or a device would never end
            raise CheckpointError(f"{path}, which {_STATE} names, is missing")
        if _digest(path) != entry["sha256"]:
            raise CheckpointError(f"{path} is damaged: its checksum is not the one that {_STATE} has")
        loaded = ops.load(path)
    except CheckpointError:
        raise
    except (OSError, ValueError, TypeError) as error:
        raise CheckpointError(f"{path} cannot be read: {error}") from error
    if not isinstance(loaded, dict):
        raise CheckpointError(f"{path} holds a tensor without a name")
    return loaded
