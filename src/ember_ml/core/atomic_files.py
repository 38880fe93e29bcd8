"""Write files completely or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO, Self

__all__ = ["Replacements", "replaced", "sync_folder"]


@contextmanager
def replaced(path: str | os.PathLike[str], follow_links: bool = True) -> Iterator[BinaryIO]:
    """Open a file to write to, which replaces ``path`` in one step when the block ends.

    Readers of ``path`` see the old file or the new one, never a part of it, also after a loss of power. An error leaves
    the old one and nothing else. A symbolic link stays and what it names is replaced, unless ``follow_links`` is False:
    then the link itself is.

    >>> import os, tempfile
    >>> from ember_ml.core.atomic_files import replaced
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "x")
    ...     with replaced(path) as file:
    ...         count, is_there = file.write(b"new"), os.path.exists(path)
    ...     is_there, os.listdir(folder)
    (False, ['x'])
    """
    with Replacements() as files:
        with files.open(path, follow_links) as file:
            yield file
        files.make()


class Replacements:
    """Files that are written beside those that they replace, which all of them do together, in their order.

    >>> import os, tempfile
    >>> from ember_ml.core.atomic_files import Replacements
    >>> with tempfile.TemporaryDirectory() as folder, Replacements() as files:
    ...     for name in ("x", "y"):
    ...         with files.open(os.path.join(folder, name)) as file:
    ...             count = file.write(b"new")
    ...     before = os.path.exists(os.path.join(folder, "x"))
    ...     files.make()
    ...     before, sorted(os.listdir(folder))
    (False, ['x', 'y'])
    """

    def __init__(self) -> None:
        self._written: list[tuple[str, str]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        for beside, _ in self._written:
            with suppress(OSError):
                os.unlink(beside)

    @contextmanager
    def open(self, path: str | os.PathLike[str], follow_links: bool = True) -> Iterator[BinaryIO]:
        """Open a file to write to that is to replace ``path``, or what it links to unless ``follow_links`` is False."""
        target = os.path.realpath(path) if follow_links else os.path.abspath(path)
        folder, name = os.path.split(target)
        beside = os.path.join(folder, f".{name}.{os.urandom(6).hex()}")
        with open(beside, "xb") as file:
            self._written.append((beside, target))
            if not os.path.islink(target):
                with suppress(FileNotFoundError):
                    os.chmod(beside, os.stat(target).st_mode & 0o777)
            yield file
            file.flush()
            os.fsync(file.fileno())

    def make(self) -> None:
        """Replace all of them, one after the other."""
        folders = {os.path.dirname(target) for _, target in self._written}
        while self._written:
            os.replace(*self._written[0])
            del self._written[0]
        for folder in folders:
            sync_folder(folder)


def sync_folder(folder: str | os.PathLike[str]) -> None:
    """Make the names in ``folder`` last, where the system lets a folder be opened."""
    if hasattr(os, "O_DIRECTORY"):
        number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(number)
        finally:
            os.close(number)
