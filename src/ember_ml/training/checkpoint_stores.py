"""Where checkpoints lie: a folder, or a place in an object store, as ``s3://bucket/run``, through fsspec.

Both hold small files, which are written in one step, and large ones, of tensors, which are written and read by their
path on this machine: those of an object store are brought there and away as a whole, with their checksums.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from os import PathLike
from pathlib import Path
from typing import Any

from ember_ml.core.atomic_files import replaced, sync_folder
from ember_ml.core.folder_lock import FolderLock
from ember_ml.errors import CheckpointError

__all__ = ["FolderStore", "ObjectStore", "open_store", "place_of"]

_LARGEST = 1 << 30
"""No state in JSON is larger than this; a damaged folder must not fill the memory."""
_ADDRESS = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]+(://|::)")


def place_of(path: str | PathLike[str]) -> str | Path:
    """Return the path of a folder, or the address of a place in an object store as it is.

    >>> from ember_ml.training.checkpoint_stores import place_of
    >>> place_of("s3://bucket/run"), place_of("runs/first").name
    ('s3://bucket/run', 'first')
    """
    return path if isinstance(path, str) and _ADDRESS.match(path) else Path(path)


def open_store(path: str | PathLike[str]) -> FolderStore | ObjectStore:
    """Return the store at a path or an address; nothing is made there yet."""
    place = place_of(path)
    if isinstance(place, Path):
        return FolderStore(place)
    try:
        from fsspec.core import url_to_fs  # not every program has an object store
    except ImportError as error:
        raise ImportError(f"{place} is read and written through fsspec: pip install 'ember-ml[stores]'") from error
    files, root = url_to_fs(place)
    if "file" in ([files.protocol] if isinstance(files.protocol, str) else files.protocol):
        return FolderStore(Path(root))
    return ObjectStore(files, root.rstrip("/"), place.rstrip("/"))


def find_digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class FolderStore:
    """A folder of this machine, or of a file system that machines share; files are on the disk when they are there."""

    patience: float = 0.02
    """Seconds between two looks for a file."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __str__(self) -> str:
        return str(self._folder)

    def path_of(self, name: str) -> str:
        """Return the path of a file, for messages."""
        return str(self._folder / name)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """A block in which this process alone writes here; the folder is made."""
        if not self._folder.is_dir():
            self._folder.mkdir(parents=True, exist_ok=True)
            sync_folder(self._folder.parent)
        with FolderLock(self._folder):
            yield

    def names(self) -> list[str]:
        """Return the names of all files; none where there is no folder."""
        try:
            return os.listdir(self._folder)
        except (FileNotFoundError, NotADirectoryError):
            return []

    def read(self, name: str) -> bytes:
        """Return the contents of a small file."""
        path = self._folder / name
        if not path.is_file():  # a pipe or a device would never end
            raise FileNotFoundError(f"{path} is no file")
        if path.stat().st_size > _LARGEST:
            raise CheckpointError(f"{path} is larger than any state of training")
        return path.read_bytes()

    def write(self, name: str, contents: bytes) -> None:
        """Write a small file, or replace it, in one step."""
        with replaced(self._folder / name, follow_links=False) as file:
            file.write(contents)

    def write_tensors(self, name: str, write: Callable[[Path], None]) -> str:
        """Let ``write`` make a new file at a path, in one step; return its checksum."""
        path = self._folder / name
        write(path)
        return find_digest(path)

    @contextmanager
    def reading(self, digests: Mapping[str, str]) -> Iterator[list[Path]]:
        """A block in which files of tensors can be opened at these paths; their checksums are ``digests``, by name."""
        paths = [self._folder / name for name in digests]
        for path, digest in zip(paths, digests.values(), strict=True):
            if not path.is_file():
                raise CheckpointError(f"{path}, which state.json names, is missing")
            if find_digest(path) != digest:
                raise CheckpointError(f"{path} is damaged: checksum mismatch with state.json")
        yield paths

    def remove(self, name: str) -> None:
        """Remove a file."""
        os.unlink(self._folder / name)


class ObjectStore:
    """A place in a file system of fsspec whose files are whole as soon as they can be read, as objects of a bucket are.

    There are no locks: one job writes at a time. Where whatever library reaches the store raises, it is a
    ``ConnectionError``, for which no older checkpoint is taken.

    Args:
        files: The file system.
        root: The path in it.
        address: The address, for messages.
    """

    patience: float = 0.5
    """Seconds between two looks for a file, each of which is a request."""

    def __init__(self, files: Any, root: str, address: str) -> None:
        self._files, self._root, self._address = files, root, address

    def __str__(self) -> str:
        return self._address

    def path_of(self, name: str) -> str:
        """Return the address of a file, for messages."""
        return f"{self._address}/{name}"

    def _place(self, name: str) -> str:
        return f"{self._root}/{name}"

    def writing(self) -> Any:
        """A block in which this process writes here."""
        return nullcontext()

    @contextmanager
    def _asking(self, name: str = "") -> Iterator[None]:
        """A block in which every error but that of a missing file is a ``ConnectionError`` that tells the address."""
        try:
            yield
        except (FileNotFoundError, CheckpointError):
            raise
        except Exception as error:  # each library has its own
            raise ConnectionError(f"{self.path_of(name)}: {str(error) or type(error).__name__}") from error

    def names(self) -> list[str]:
        """Return the names of all files; none where there is nothing."""
        with self._asking():
            self._files.invalidate_cache(self._root)  # other processes write here too
            try:
                found = self._files.ls(self._root, detail=False)
            except (FileNotFoundError, NotADirectoryError):
                return []
        return [path.rstrip("/").rpartition("/")[2] for path in found]

    def read(self, name: str) -> bytes:
        """Return the contents of a small file."""
        with self._asking(name):
            self._files.invalidate_cache(self._root)
            if self._files.size(self._place(name)) > _LARGEST:
                raise CheckpointError(f"{self.path_of(name)} is larger than any state of training")
            return self._files.cat_file(self._place(name))

    def write(self, name: str, contents: bytes) -> None:
        """Write a small file, or replace it, in one step."""
        with self._asking(name):
            self._files.pipe_file(self._place(name), contents)

    def write_tensors(self, name: str, write: Callable[[Path], None]) -> str:
        """Let ``write`` make a file at a path of this machine, and bring it to the store; return its checksum."""
        with tempfile.TemporaryDirectory(prefix="ember-ml-") as folder:
            path = Path(folder) / name
            write(path)
            digest, size = find_digest(path), path.stat().st_size
            with self._asking(name):
                self._files.put_file(str(path), self._place(name))
                self._files.invalidate_cache(self._root)
                arrived = self._files.size(self._place(name))
        if arrived != size:
            raise OSError(f"{self.path_of(name)}: {arrived} of {size} bytes arrived")
        return digest

    @contextmanager
    def reading(self, digests: Mapping[str, str]) -> Iterator[list[Path]]:
        """A block in which files of tensors can be opened at these paths of this machine, and stay open after it.

        Their checksums are ``digests``, by name.
        """
        with tempfile.TemporaryDirectory(prefix="ember-ml-", ignore_cleanup_errors=True) as folder:
            paths = []
            for name, digest in digests.items():
                path = Path(folder) / name
                try:
                    with self._asking(name):
                        self._files.get_file(self._place(name), str(path))
                except FileNotFoundError:
                    raise CheckpointError(f"{self.path_of(name)}, which state.json names, is missing") from None
                if find_digest(path) != digest:
                    raise CheckpointError(f"{self.path_of(name)} is damaged: checksum mismatch with state.json")
                paths.append(path)
            yield paths

    def remove(self, name: str) -> None:
        """Remove a file."""
        with self._asking(name):
            self._files.rm_file(self._place(name))
