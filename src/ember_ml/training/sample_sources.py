"""Sources of a data loader that make batches sample by sample: of map-style datasets, rows of arrays, and iterables.

They give tasks, which the program itself or its workers carry out.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from itertools import islice
from typing import Any

from ember_ml import ops
from ember_ml.backend.common.digests import digest_of
from ember_ml.backend.host_arrays import as_host
from ember_ml.backend.selection import backend_of
from ember_ml.core import trees
from ember_ml.tensor import EmberTensor
from ember_ml.training import collation
from ember_ml.training.batch_making import BatchMaker, BatchTask
from ember_ml.training.sample_trees import is_text, map_arrays
from ember_ml.training.sources import Stream, count_batches

__all__ = ["RowSamples", "SampleStreamSource", "Samples"]


class Samples:
    """The samples of a map-style dataset, ``dataset[index]``; ``length`` of them make an epoch."""

    digest: None = None
    """All ranks order samples by the loader's seed."""

    def __init__(
        self,
        dataset: Any,
        batch_size: int,
        drop_last: bool,
        transform: Callable[[Any], Any] | None,
        collate: Callable[[list[Any]], Any] | None,
        length: int,
    ) -> None:
        self.length = length
        self.batch_size = batch_size
        self.count: int = count_batches(self.length, batch_size, drop_last)
        self.maker: BatchMaker = BatchMaker(dataset, transform, collate or collation.stack)

    def tasks(
        self, seed: int, epoch: int, order: Any, start: int, rank: int, ranks: int
    ) -> Generator[BatchTask, None, None]:
        """Yield the tasks for this rank's part of each batch, from batch ``start``; ``order`` is on the host."""
        for number in range(start, self.count):
            first = number * self.batch_size
            size = min(self.batch_size, self.length - first)
            low, high = first + size * rank // ranks, first + size * (rank + 1) // ranks
            is_empty = low == high
            if is_empty:
                low, high = first, first + 1
            items = list(range(low, high)) if order is None else order[low:high].tolist()
            yield BatchTask(seed, epoch, low, items, is_empty)

    def deliver(self, parts: Any) -> Any:
        """Return the batch as tensors of the active backend."""
        return map_arrays(_deliver, parts)


def _deliver(x: Any) -> Any:
    return ops.convert_to_tensor(x) if hasattr(x, "shape") and not is_text(x) else x


class RowSamples:
    """The rows of arrays, in tuples and dicts, as a map-style dataset."""

    def __init__(self, data: Any) -> None:
        self._data = data

    def __getitem__(self, index: int) -> Any:
        return _take_row(self._data, index)


def _take_row(data: Any, index: int) -> Any:
    if isinstance(data, dict):
        return {key: _take_row(value, index) for key, value in data.items()}
    if isinstance(data, tuple):
        parts = [_take_row(value, index) for value in data]
        return type(data)(*parts) if hasattr(data, "_fields") else tuple(parts)
    return data[index]


class SampleStreamSource(Stream):
    """The samples of an iterable, which the program reads, and its workers transform and collate."""

    def __init__(
        self,
        data: Any,
        batch_size: int,
        drop_last: bool,
        transform: Callable[[Any], Any] | None,
        collate: Callable[[list[Any]], Any] | None,
    ) -> None:
        super().__init__(data, batch_size, drop_last)
        self._size = batch_size
        self.maker: BatchMaker = BatchMaker(None, transform, collate or collation.stack)

    def tasks(
        self, seed: int, epoch: int, order: Any, start: int, rank: int, ranks: int
    ) -> Generator[BatchTask, None, None]:
        """Yield the tasks for this rank's part of each batch; samples before batch ``start`` are read and dropped."""
        items, size = self._open(), self._size
        first = start * size
        for _ in islice(items, first):
            pass
        is_first = True
        while samples := list(islice(items, size)):
            if len(samples) < size and self._drop_last:
                break
            if is_first and ranks > 1:
                self.digest: str | None = digest_of(samples)
            is_first = False
            low, high = len(samples) * rank // ranks, len(samples) * (rank + 1) // ranks
            is_empty = low == high
            part = samples[:1] if is_empty else samples[low:high]
            yield BatchTask(
                seed, epoch, first + (0 if is_empty else low), trees.map_tree(_leave_device, part), is_empty
            )
            first += len(samples)
        if is_first and not start:
            raise ValueError("the iterable gave no batch")

    def deliver(self, parts: Any) -> Any:
        """Return the batch as tensors of the active backend."""
        return map_arrays(_deliver, parts)


def _leave_device(x: Any) -> Any:
    """Return tensors as arrays of the host, where every process can read them."""
    return as_host(x) if type(x) is EmberTensor or backend_of(x) is not None else x
