"""Tar files that must be whole: where Python takes what is damaged or cut short for their end, it is an error here."""

from __future__ import annotations

import re
import tarfile
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from importlib import import_module
from typing import Any

__all__ = ["open_tar"]

_LARGEST = 1 << 24  # bytes of a header that tells a long name or other attributes
_HEADERS = (tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK, tarfile.XHDTYPE, tarfile.XGLTYPE, b"X")
_PIECE = 1 << 20  # bytes that are read at once
_PACKED = (
    (re.compile(rb"\x1f\x8b\x08"), "gzip"),
    (re.compile(rb"BZh.1AY&SY", re.DOTALL), "bz2"),
    (re.compile(rb"\xfd7zXZ|\x5d\x00\x00\x80"), "lzma"),
    (re.compile(rb"\x28\xb5\x2f\xfd"), "compression.zstd"),
)


class _Header(tarfile.TarInfo):
    """A header; ``tarfile`` ends in silence at one that is damaged or missing, unless it is the first."""

    @classmethod
    def frombuf(cls, buf: Any, encoding: str, errors: str) -> _Header:
        if len(buf) == tarfile.BLOCKSIZE and not buf.strip(b"\0"):  # the end
            return super().frombuf(buf, encoding, errors)
        if not buf:
            raise tarfile.ReadError("it ends without the zeros that end a tar file: it was cut short or never finished")
        try:
            found = super().frombuf(buf, encoding, errors)
        except tarfile.HeaderError as error:
            raise tarfile.ReadError(str(error)) from error
        if found.size < 0 or (found.type in _HEADERS and found.size > _LARGEST):
            raise tarfile.ReadError(f"a header tells the size {found.size}")
        return found


class _WholeTarFile(tarfile.TarFile):
    tarinfo = _Header

    def next(self) -> tarfile.TarInfo | None:
        found = super().next()
        if found is not None and found.size < 0:  # by another attribute than that of its own header
            raise tarfile.ReadError(f"{found.name} has the size {found.size}")
        return found


class _ForwardFile:
    """A file that is read from its start to its end, with the methods that ``tarfile`` needs."""

    def __init__(self, file: Any) -> None:
        self._file, self._place = file, 0

    def tell(self) -> int:
        return self._place

    def seek(self, place: int) -> None:
        while self._place < place and self.read(min(place - self._place, _PIECE)):
            pass

    def read(self, size: int) -> bytes:
        pieces = []
        while size > 0 and (piece := self._read_piece(min(size, _PIECE))):  # a wrong size asks for no memory
            pieces.append(piece)
            size -= len(piece)
            self._place += len(piece)
        return b"".join(pieces)

    def _read_piece(self, size: int) -> bytes:
        try:
            return self._file.read(size)
        except Exception as error:  # each kind of compression has its own for what is damaged or cut short
            raise tarfile.ReadError(str(error)) from error


@contextmanager
def open_tar(path: str, in_order: bool) -> Generator[tarfile.TarFile, None, None]:
    """Open a tar file, of which all entries are read before the block ends; ``ValueError`` where it is not whole.

    One that is read in order may be compressed, and need not be a file on a disk.
    """
    with open(path, "rb") as packed:
        try:
            with _unpack(packed, path, in_order) as unpacked:
                file: Any = _ForwardFile(unpacked) if in_order else unpacked
                with _WholeTarFile.open(path, "r:", file) as tar:
                    yield tar
                while rest := file.read(_PIECE):
                    if rest.strip(b"\0"):
                        raise tarfile.ReadError(
                            "there are data behind the zeros that end it: several were joined, or a part is zeroed"
                        )
        except tarfile.TarError as error:
            raise ValueError(f"{path} is no whole tar file: {error}") from error


def _unpack(packed: Any, path: str, in_order: bool) -> AbstractContextManager[Any]:
    """Return the content of a file that may be compressed, which is checked while it is read."""
    # tarfile's own streams take a compressed file that was cut short for a whole one
    start = packed.peek(16)
    for beginning, module in _PACKED:
        if beginning.match(start):
            if not in_order:
                raise ValueError(f"{path} is compressed: uncompress it, or read it in order with datasets.stream_tar")
            try:
                return import_module(module).open(packed)
            except ImportError as error:  # zstd before Python 3.14
                raise ValueError(f"{path} is compressed, and this Python has no module {module} to read it") from error
    return nullcontext(packed)
