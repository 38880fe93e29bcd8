"""Sources of a data loader: rows of arrays and tables, or the items of an iterable.

A source makes batches in two steps. Fetching is work on the host, which a thread may do ahead: gathering rows, running
the iterable. Delivering makes tensors of the backend that is active then, so that a switch of the backend takes effect
with the next batch.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from itertools import islice
from typing import Any

from ember_ml import ops
from ember_ml.backend.common.digests import digest_of
from ember_ml.backend.common.loader_shares import open_share
from ember_ml.backend.host_arrays import as_host
from ember_ml.backend.selection import active, backend_of
from ember_ml.core import trees
from ember_ml.tensor import EmberTensor
from ember_ml.training.sample_trees import drop_rows, is_text, map_arrays, merge_samples
from ember_ml.typing import Tensor

__all__ = ["Rows", "Stream", "count_batches", "is_table"]

_TABLES = ("cudf", "modin", "narwhals", "pandas", "polars", "pyarrow")


def is_table(data: Any) -> bool:
    """Whether the data are a dataframe or a series."""
    return type(data).__module__.partition(".")[0] in _TABLES


def count_batches(length: int, batch_size: int, drop_last: bool) -> int:
    """Return the number of batches that so many rows make; raise where they make none."""
    if not length:
        raise ValueError("the data have no rows")
    count = length // batch_size if drop_last else -(-length // batch_size)
    if not count:
        raise ValueError(f"{length} rows make no batch of {batch_size}, and drop_last drops the rest")
    return count


class Rows:
    """Arrays and tables with the same number of rows, which are their first axis.

    ``length`` is the number of rows of an epoch, where a sampler decides it.
    """

    digest: None = None
    """All ranks order rows by the loader's seed."""

    def __init__(self, data: Any, batch_size: int, drop_last: bool, length: int | None = None) -> None:
        self._fields, self._assemble = trees.flatten(_fields(data, ""))
        lengths = {field.place: field.length for field in self._fields}
        if not lengths:
            raise ValueError("there are no data: the tuple or dict is empty")
        if len({*lengths.values()}) > 1:
            listed = ", ".join(f"{length} at {place}" for place, length in lengths.items())
            raise ValueError(f"the parts of the data must have the same number of rows, and have {listed}")
        self.rows: int = self._fields[0].length
        self.length: int = self.rows if length is None else length
        self.batch_size = batch_size
        self.count: int = count_batches(self.length, batch_size, drop_last)

    def fetch(self, epoch: int, order: Any, start: int, rank: int, ranks: int) -> Generator[list[Any], None, None]:
        """Yield the fields of this rank's part of each batch, from batch ``start``; ``order`` is on the host."""
        for number in range(start, self.count):
            first = number * self.batch_size
            size = min(self.batch_size, self.length - first)
            low, high = first + size * rank // ranks, first + size * (rank + 1) // ranks
            rows = slice(low, high) if order is None else order[low:high]
            yield [field.fetch(rows) for field in self._fields]

    def on_host(self) -> Any:
        """Return all the data as arrays of the host, in their structure."""
        return self._assemble([field.on_host() for field in self._fields])

    def compute(self, parts: list[Any]) -> list[Any]:
        """Return the parts, which need no computation."""
        return parts

    def deliver(self, parts: list[Any]) -> Any:
        """Return the batch as tensors of the active backend, in the structure of the data."""
        return self._assemble([field.deliver(part) for field, part in zip(self._fields, parts, strict=True)])


def _fields(data: Any, place: str) -> Any:
    """Tuples and dicts with a field for each array in them."""
    if isinstance(data, dict):
        return {key: _fields(value, f"{place}[{key!r}]") for key, value in data.items()}
    if isinstance(data, tuple):
        parts = [_fields(value, f"{place}[{number}]") for number, value in enumerate(data)]
        return type(data)(*parts) if hasattr(data, "_fields") else tuple(parts)
    return _Field(data, place or "the top")


class _Field:
    """One array of the data, in the host's memory or on the device of its own backend."""

    def __init__(self, data: Any, place: str) -> None:
        self.place = place
        native = data._array if type(data) is EmberTensor else data
        self._owner = backend_of(native)
        self._on_device: Any = None
        self._on_host: Any = None
        if self._owner is not None and self._owner.device_of(native) != "cpu":
            self._on_device = native
        else:
            try:
                self._on_host = native = _host_rows(native)
            except (TypeError, ValueError) as error:
                raise type(error)(f"data at {self.place}: {error}") from error
        shape = tuple(native.shape)
        if not shape:
            raise ValueError(f"data at {self.place}: a single number has no rows")
        self.length: int = shape[0]

    def fetch(self, rows: Any) -> Any:
        """Return the rows from the host's memory; those on a device stay there for now."""
        return (rows,) if self._on_device is not None else _take_rows(self._on_host, rows)

    def deliver(self, part: Any) -> Tensor:
        if type(part) is not tuple:
            return ops.convert_to_tensor(part)
        (rows,) = part
        if self._owner is active():
            return self._on_device[rows] if type(rows) is slice else ops.take(self._on_device, rows, 0)
        return ops.convert_to_tensor(_take_rows(self.on_host(), rows))  # the backend was switched

    def on_host(self) -> Any:
        if self._on_host is None:
            self._on_host = as_host(self._on_device)
        return self._on_host


def _take_rows(array: Any, rows: Any) -> Any:
    return array[rows] if type(rows) is slice else array.take(rows, 0)


def _host_rows(data: Any) -> Any:
    return as_host(_table_as_array(data) if is_table(data) else data)


def _table_as_array(data: Any) -> Any:
    """Return a dataframe as a matrix of its columns, a series as a vector."""
    try:
        import narwhals.stable.v2 as nw  # reads every kind of dataframe; not every program has one
    except ImportError as error:
        raise ImportError("dataframes are read through narwhals: pip install 'ember-ml[tables]'") from error
    table = nw.from_native(data, eager_only=True, allow_series=True)
    columns = {table.name: table.dtype} if isinstance(table, nw.Series) else table.schema
    for name, dtype in columns.items():
        if not dtype.is_numeric() and dtype != nw.Boolean:
            raise TypeError(
                f"the column {name!r} is {dtype}, not numbers; leave it out, or encode it: features.TableFeatures"
            )
    return table.to_numpy()


class Stream:
    """The items of an iterable: batches, or with ``batch_size`` samples, so many of which make a batch."""

    length: int | None = None
    digest: str | None = None
    """The checksum of the first batch of the latest loop, where several ranks share it."""

    def __init__(self, data: Any, batch_size: int | None, drop_last: bool) -> None:
        self._data = data
        self._is_open = True
        self.batch_size = batch_size
        self._drop_last = drop_last
        self.count: int | None = self._count()

    def _count(self) -> int | None:
        """Return the number of batches of an epoch; None where the iterable has no length."""
        try:
            length = len(self._data)
        except TypeError:
            return None
        if self.batch_size is None:
            return length
        return length // self.batch_size if self._drop_last else -(-length // self.batch_size)

    def fetch(self, epoch: int, order: Any, start: int, rank: int, ranks: int) -> Generator[Any, None, None]:
        """Yield this rank's part of each batch, from batch ``start``; the batches before it are read and dropped.

        Of PyTorch's loader of a dataset with indices a rank reads its own part alone, and nothing before ``start``; its
        generators begin where they began in that epoch.
        """
        opened = open_share(self._data, epoch, start, rank, ranks)
        if opened is not None:
            share, parts = opened
            for part in parts:
                self.digest = share.digest
                yield map_arrays(drop_rows, part) if share.is_empty.popleft() else part
            return
        is_empty = True
        for batch in islice(self._batches(), start, None):
            if is_empty and ranks > 1:
                self.digest = digest_of(map_arrays(_compute, batch))
            is_empty = False
            yield batch if ranks == 1 else map_arrays(lambda x: _take_share(x, rank, ranks), batch)
        if is_empty and not start:
            raise ValueError("the iterable gave no batch")

    def _batches(self) -> Iterator[Any]:
        items = self._open()
        if self.batch_size is None:
            yield from items
            return
        while samples := list(islice(items, self.batch_size)):
            if len(samples) == self.batch_size or not self._drop_last:
                yield merge_samples(samples, _Column)

    def _open(self) -> Iterator[Any]:
        items = self._data() if callable(self._data) else self._data
        if not isinstance(items, Iterable):
            raise TypeError(f"the function gave {type(items).__name__}, which cannot be iterated over")
        opened = iter(items)
        if opened is self._data:
            if not self._is_open:
                raise ValueError(
                    "the iterator has been read, and cannot start again: give the loader a list, a dataset, or a "
                    "function that makes a new iterator"
                )
            self._is_open = False
        return opened

    def compute(self, parts: Any) -> Any:
        """Evaluate lazy tensors and convert columns, as far as this thread can; return the parts."""
        return map_arrays(_compute, parts)

    def deliver(self, parts: Any) -> Any:
        """Return the batch as tensors of the active backend; texts and None in it stay as they are."""
        return ops.convert_to_tensor(parts) if is_text(parts) else map_arrays(_deliver, parts)


class _Column:
    """The values of one part of a sample, for all samples of a batch."""

    def __init__(self, values: list[Any], key: Any) -> None:
        self.values = values


def _deliver(x: Any) -> Any:
    given = x.values if type(x) is _Column else x
    if is_text(given):
        return given
    return ops.convert_to_tensor(as_host(given) if type(x) is _Column else x)


def _compute(x: Any) -> Any:
    try:
        if type(x) is _Column:
            return x if is_text(x.values) else as_host(x.values)
        backend = backend_of(x)
        if backend is not None and backend.laziness is not None:
            backend.laziness.evaluate(x)
    except RuntimeError:
        pass  # a lazy tensor can be evaluated only by the thread that made it, which may be another one
    return x


def _take_share(x: Any, rank: int, ranks: int) -> Any:
    given = x.values if type(x) is _Column else x
    if is_text(given) and type(given) is not list:
        return given
    rows = given if is_text(given) or hasattr(given, "shape") else as_host(given)
    count = len(rows)
    return rows[count * rank // ranks : count * (rank + 1) // ranks]
