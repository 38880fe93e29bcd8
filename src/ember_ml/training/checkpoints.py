"""Checkpoints: the whole state of training in a folder, never half written, checked when it is read.

A folder holds ``state.json`` and the tensor files that it names, with their checksums: ``model-<step>.safetensors``,
whose names are those of the model's tensors, and ``optimizer-<step>.safetensors``. New tensor files are written first,
then ``state.json`` is replaced in one step, then the old tensor files are removed: whenever a process dies, the folder
holds one whole checkpoint.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from ember_ml import ops
from ember_ml.errors import CheckpointError
from ember_ml.typing import Tensor

__all__ = ["exists", "read", "write"]

_STATE = "state.json"
_FORMAT = "ember-ml checkpoint"
_VERSION = 1
_PARTS = ("model", "optimizer")
_LARGEST = 1 << 30
"""No state in JSON is larger than this; a damaged folder must not fill the memory."""


def exists(path: str | PathLike[str]) -> bool:
    """Whether the folder ``path`` holds a checkpoint."""
    return (Path(path) / _STATE).is_file()


def write(path: str | PathLike[str], tensors: Mapping[str, Mapping[str, Tensor]], state: Mapping[str, Any]) -> None:
    """Write the tensors of ``model`` and ``optimizer`` and a plain state to the folder ``path``, which is made."""
    folder = Path(path)
    folder.mkdir(parents=True, exist_ok=True)
    files = {}
    for part in _PARTS:
        name = _fresh_name(folder, part, int(state["steps"]))
        ops.save(folder / name, tensors[part])
        files[part] = {"name": name, "sha256": _digest(folder / name)}
    text = json.dumps({"format": _FORMAT, "version": _VERSION, "files": files, "state": state}, indent=1)
    _replace(folder / _STATE, text)
    _remove_others(folder, {file["name"] for file in files.values()})


def _fresh_name(folder: Path, part: str, step: int) -> str:
    """A name for a tensor file that no checkpoint uses yet: what is there must stay until the new one is whole."""
    name, count = f"{part}-{step}.safetensors", 1
    while (folder / name).exists():
        name, count = f"{part}-{step}-{count}.safetensors", count + 1
    return name


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _replace(path: Path, text: str) -> None:
    """Make ``text`` the contents of a file in one step, and last when the machine loses power."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    with temporary.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    descriptor = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove_others(folder: Path, kept: set[str]) -> None:
    """Remove what older checkpoints, and writers that died, have left."""
    for part in _PARTS:
        for file in folder.glob(f"{part}-*.safetensors"):
            if file.name not in kept:
                file.unlink(missing_ok=True)
    for file in folder.glob(".*.part"):
        file.unlink(missing_ok=True)


def read(path: str | PathLike[str]) -> tuple[dict[str, dict[str, Tensor]], dict[str, Any]]:
    """The tensors of ``model`` and ``optimizer``, and the plain state, of the checkpoint in the folder ``path``.

    A folder without one, or with one that is damaged, raises ``CheckpointError``; nothing in it is ever executed.
    """
    folder = Path(path)
    if not exists(folder):
        raise CheckpointError(f"{folder} holds no checkpoint: there is no {_STATE} in it")
    document = _document(folder / _STATE)
    tensors = {}
    for part in _PARTS:
        file = document["files"][part]
        tensors[part] = _tensors(folder, file["name"], file["sha256"])
    return tensors, document["state"]


def _document(path: Path) -> dict[str, Any]:
    try:
        if path.stat().st_size > _LARGEST:
            raise CheckpointError(f"{path} is larger than any state of training")
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise CheckpointError(f"{path} is damaged: {error}") from error
    if not isinstance(document, dict) or document.get("format") != _FORMAT:
        raise CheckpointError(f"{path} is no checkpoint of Ember ML")
    if document.get("version") != _VERSION:
        raise CheckpointError(f"{path} has version {document.get('version')!r}, and this program reads {_VERSION}")
    files, state = document.get("files"), document.get("state")
    if not isinstance(files, dict) or not isinstance(state, dict) or not all(_is_file(files.get(x)) for x in _PARTS):
        raise CheckpointError(f"{path} is damaged: it does not name its tensor files")
    return document


def _is_file(entry: Any) -> bool:
    """Whether an entry names a file of the folder itself, and its checksum."""
    if not isinstance(entry, dict) or not isinstance(entry.get("sha256"), str):
        return False
    name = entry.get("name")
    return isinstance(name, str) and name.endswith(".safetensors") and not set(name) & set("/\\\0") and name[0] != "."


def _tensors(folder: Path, name: str, digest: str) -> dict[str, Tensor]:
    path = folder / name
    try:
        found = _digest(path)
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error}") from error
    if found != digest:
        raise CheckpointError(f"{path} is damaged: its checksum is not the one that {_STATE} has")
    try:
        loaded = ops.load(path)
    except ValueError as error:
        raise CheckpointError(f"{path} is damaged: {error}") from error
    return loaded if isinstance(loaded, dict) else {}
