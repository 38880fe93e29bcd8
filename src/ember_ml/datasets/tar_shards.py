"""Samples in tar files, laid out as WebDataset does: files of one sample have one name and several endings.

``000/cat.jpg`` and ``000/cat.cls`` are one sample with the key ``000/cat``: a dict of bytes by ending.
"""

from __future__ import annotations

import os
import tarfile
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from ember_ml.datasets.whole_tar_files import open_tar

__all__ = ["TarShards", "stream_tar"]

KEY = "__key__"


class _Member(NamedTuple):
    """Where a file of a sample lies in its tar file."""

    ending: str
    start: int
    size: int


class _Sample(NamedTuple):
    shard: int
    key: str
    members: tuple[_Member, ...]


class TarShards:
    """The samples of tar files as a dataset with indices: dicts of bytes by ending, and the text ``__key__``.

    The files are not compressed; their tables of contents are read once, the samples when they are asked for. The
    transform of a loader decodes them. :func:`stream_tar` reads compressed files, and what can only be read in order.
    A file that is damaged or was cut short is a ``ValueError``, and so are links in it, which are not followed.

    Args:
        paths: The tar files, in order.

    >>> import io, os, tarfile, tempfile
    >>> from ember_ml import datasets
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "0.tar")
    ...     with tarfile.open(path, "w") as tar:
    ...         for name, content in (("a.txt", b"first"), ("a.cls", b"0"), ("b.txt", b"second"), ("b.cls", b"1")):
    ...             entry = tarfile.TarInfo(name)
    ...             entry.size = len(content)
    ...             tar.addfile(entry, io.BytesIO(content))
    ...     shards = datasets.TarShards([path])
    ...     len(shards), shards[1]
    (2, {'__key__': 'b', 'txt': b'second', 'cls': b'1'})
    """

    block_lengths: list[int]
    """The number of samples in each file, for ``samplers.BlockSampler``."""

    def __init__(self, paths: Iterable[str | os.PathLike[str]]) -> None:
        self._paths = _list_paths(paths)
        self._samples: list[_Sample] = []
        self.block_lengths = []
        for shard, path in enumerate(self._paths):
            before = len(self._samples)
            with open_tar(path, in_order=False) as tar:
                for key, group in _group(tar, path):
                    members = [_find(ending, entry, path) for ending, entry in group]
                    self._samples.append(_Sample(shard, key, tuple(members)))
            self.block_lengths.append(len(self._samples) - before)

    def __len__(self) -> int:
        return len(self._samples)

    def __getitem__(self, index: int) -> dict[str, Any]:
        shard, key, members = self._samples[index]
        sample: dict[str, Any] = {KEY: key}
        with open(self._paths[shard], "rb") as file:
            for ending, start, size in members:
                file.seek(start)
                content = file.read(size)
                if len(content) < size:
                    raise ValueError(f"{self._paths[shard]} has become shorter: {key}.{ending} is not whole")
                sample[ending] = content
        return sample


def stream_tar(paths: Iterable[str | os.PathLike[str]]) -> Iterator[dict[str, Any]]:
    """Yield the samples of the tar files at ``paths`` in order, each read once from its start; compressed ones too.

    What is damaged or cut short is a ``ValueError`` after the samples before it. For a loader, which reads them again
    in each epoch: ``DataLoader(lambda: stream_tar(paths), batch_size=32)``.

    >>> from ember_ml import datasets
    >>> list(datasets.stream_tar([]))
    []
    """
    for path in _list_paths(paths):
        with open_tar(path, in_order=True) as tar:
            for key, group in _group(tar, path):
                sample: dict[str, Any] = {KEY: key}
                for ending, entry in group:
                    content = tar.extractfile(entry)
                    sample[ending] = b"" if content is None else content.read()
                yield sample


def _find(ending: str, entry: tarfile.TarInfo, path: str) -> _Member:
    if entry.issparse():
        raise ValueError(f"{path} has holes left out of {entry.name}: pack it without --sparse")
    return _Member(ending, entry.offset_data, entry.size)


def _list_paths(paths: Iterable[str | os.PathLike[str]]) -> list[str]:
    if isinstance(paths, str | os.PathLike):
        raise TypeError(f"shards are a list of paths, not the one path {os.fspath(paths)!r}")
    return [os.fspath(path) for path in paths]


def _group(tar: tarfile.TarFile, path: str) -> Iterator[tuple[str, Iterator[tuple[str, tarfile.TarInfo]]]]:
    """Yield each sample of a tar file: its key, and the entries of its files by ending, to be read before the next."""
    entries = _Entries(tar, path)
    while entries.key is not None:
        key = entries.key
        yield key, entries.of_one_sample()


class _Entries:
    """The files in a tar file, one ahead."""

    def __init__(self, tar: tarfile.TarFile, path: str) -> None:
        self._path = path
        self._found = iter(tar)
        self.key: str | None = None
        self._ending = ""
        self._advance()

    def _advance(self) -> None:
        for entry in self._found:
            folder, slash, name = entry.name.rpartition("/")
            stem, _, ending = name.partition(".")
            if not (stem and ending) or (name.startswith("__") and name.endswith("__")):
                continue
            if entry.issym() or entry.islnk():  # a sample would lack this file
                raise ValueError(
                    f"{self._path} has a link in the place of {entry.name}, and links are not followed: pack the file "
                    "itself, with tar --dereference --hard-dereference"
                )
            if ending == KEY:
                raise ValueError(f"{self._path} has {entry.name}, whose ending is the name of the sample's key")
            if entry.isfile():
                self.key, self._ending, self._entry = f"{folder}{slash}{stem}", ending.lower(), entry
                return
        self.key = None

    def of_one_sample(self) -> Iterator[tuple[str, tarfile.TarInfo]]:
        key, seen = self.key, set()
        while self.key == key and key is not None:
            if self._ending in seen:
                raise ValueError(f"{self._path} has {key}.{self._ending} twice in one sample")
            seen.add(self._ending)
            yield self._ending, self._entry
            self._advance()
