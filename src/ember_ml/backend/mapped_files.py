"""Map a file into memory in one piece, and let each part of it leave memory when nothing refers to that part."""

from __future__ import annotations

import mmap
import os
import weakref
from typing import BinaryIO

import numpy as np

__all__ = ["MappedFile"]

_PAGE = mmap.PAGESIZE
_RELEASE: int | None = vars(mmap).get("MADV_DONTNEED")  # which Windows does not have


class MappedFile:
    """A file in memory, as a private mapping: what is written to it does not reach the file.

    There is one mapping for all parts, since each keeps a file open, of which a process may have about a thousand.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._mapped: mmap.mmap | None = None
        self._taken: set[int] = set()

    def is_taken(self, start: int) -> bool:
        """Return whether somebody got the part at ``start`` before, and may have changed it."""
        return start in self._taken

    def take(self, start: int, end: int, dtype: np.dtype) -> np.ndarray:
        """Return the numbers from byte ``start`` to ``end``, once; raise ``EOFError`` where the file is shorter now.

        Pages fill with them when they are used, and are given back when neither the array nor a view of it is left.
        """
        if end > os.fstat(self._file.fileno()).st_size:
            raise EOFError(f"the file ends before byte {end}")
        if self._mapped is None:
            self._mapped = mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_COPY)
        array = np.frombuffer(self._mapped, dtype, (end - start) // dtype.itemsize, start)
        # views of the array refer to it; a reference to the mapping would keep it when all its parts are gone
        weakref.finalize(array, _give_back, weakref.ref(self._mapped), start, end).atexit = False
        self._taken.add(start)
        return array


def _give_back(mapping: weakref.ref[mmap.mmap], start: int, end: int) -> None:
    """Let the pages between two bytes go that no other part has a share in."""
    mapped, first, last = mapping(), -(-start // _PAGE) * _PAGE, end // _PAGE * _PAGE
    if mapped is not None and _RELEASE is not None and first < last:
        mapped.madvise(_RELEASE, first, last - first)
