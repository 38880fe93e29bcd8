"""Let one writer at a time change a folder."""

from __future__ import annotations

import os
import time
from contextlib import suppress

try:
    import fcntl
except ImportError:  # Windows has none
    fcntl = None

__all__ = ["FolderLock"]

_PATIENCE, _PAUSE = 60.0, 0.02  # seconds to wait for other writers, in all and between two attempts


class FolderLock:
    """A block in which no other process or thread that takes this lock writes to a folder.

    Where the file system has no locks, nothing is locked. The lock ends with this object at the latest, and with the
    process, however that ends. One that others hold for a minute raises ``TimeoutError``.
    """

    _number: int | None = None

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._number = os.open(folder, os.O_RDONLY)

    def __enter__(self) -> None:
        if fcntl is None or self._number is None:
            return
        until = time.monotonic() + _PATIENCE
        while True:
            try:
                fcntl.flock(self._number, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                if time.monotonic() > until:  # whoever may read the folder can lock it, and for ever
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
