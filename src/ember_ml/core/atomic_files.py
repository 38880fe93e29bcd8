"""Write files completely or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

__all__ = ["replaced", "sync_folder"]


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
    target = os.path.realpath(path) if follow_links else os.path.abspath(path)
    folder, name = os.path.split(target)
    beside = os.path.join(folder, f".{name}.{os.urandom(6).hex()}")
    try:
        with open(beside, "xb") as file:
            if not os.path.islink(target):
                with suppress(FileNotFoundError):
                    os.chmod(beside, os.stat(target).st_mode & 0o777)
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(beside)
        raise
    sync_folder(folder)


def sync_folder(folder: str | os.PathLike[str]) -> None:
    """Make the names in ``folder`` last, where the system lets a folder be opened."""
    if hasattr(os, "O_DIRECTORY"):
        number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(number)
        finally:
            os.close(number)
