"""Rows of Parquet files, read by row groups through pyarrow."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from itertools import accumulate
from typing import Any

__all__ = ["ParquetRows"]

_KEPT = 8  # row groups in memory: more than the samples of a window of samplers.BlockSampler come from


class ParquetRows:
    """The rows of Parquet files as a dataset with indices: dicts of values by column.

    Row groups are read when a row of them is asked for, and the last few are kept; so rows in order, or in that of
    ``samplers.BlockSampler(rows.block_lengths)``, are read fast, and a full shuffle is slow. Each worker reads for
    itself. Columns of numbers, bools and times without nulls give NumPy numbers, those of lists of such without nulls
    arrays, all others Python values.

    Args:
        paths: The files, in order; they have the same columns.
        columns: The columns to read; by default all.

    >>> from ember_ml import datasets
    >>> datasets.ParquetRows([])
    Traceback (most recent call last):
    ValueError: there are no Parquet files
    """

    block_lengths: list[int]
    """The number of rows in each row group."""

    def __init__(self, paths: Iterable[str | os.PathLike[str]], columns: Sequence[str] | None = None) -> None:
        if isinstance(paths, str | os.PathLike):
            raise TypeError(f"files are a list of paths, not the one path {os.fspath(paths)!r}")
        if isinstance(columns, str):
            raise TypeError(f"columns are a list of names, not the one name {columns!r}")
        chosen = None if columns is None else list(columns)
        if chosen is not None and not chosen:
            raise ValueError("there is no column to read")
        self._paths = [os.fspath(path) for path in paths]
        if not self._paths:
            raise ValueError("there are no Parquet files")
        self._groups: list[tuple[str, int]] = []
        self.block_lengths = []
        parquet = _import_parquet()
        for path in self._paths:
            with _named(path), parquet.ParquetFile(path) as file:
                names = file.schema_arrow.names
                chosen = names if chosen is None else chosen
                missing = [name for name in chosen if name not in names]
                if missing:
                    raise ValueError(f"{path} has no column {missing[0]!r}; it has {', '.join(names)}")
                for group in range(file.num_row_groups):
                    self._groups.append((path, group))
                    self.block_lengths.append(file.metadata.row_group(group).num_rows)
        self._columns: list[str] = chosen or []
        self._ends = list(accumulate(self.block_lengths))
        self._kept: OrderedDict[int, dict[str, Any]] = OrderedDict()

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def __getitem__(self, index: int) -> dict[str, Any]:
        if not 0 <= index < len(self):
            raise IndexError(f"there are {len(self)} rows, and none has the index {index}")
        block = bisect_right(self._ends, index)
        values = self._kept.get(block)
        if values is None:
            values = self._kept[block] = self._read(block)
            if len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        else:
            self._kept.move_to_end(block)
        row = index - self._ends[block] + self.block_lengths[block]
        return {name: column[row] for name, column in values.items()}

    def _read(self, block: int) -> dict[str, Any]:
        path, group = self._groups[block]
        with _named(path), _import_parquet().ParquetFile(path) as file:
            table = file.read_row_group(group, columns=self._columns, use_threads=False)
        return {name: _values_of(table.column(name)) for name in self._columns}

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_kept": OrderedDict()}


def _values_of(column: Any) -> Any:
    """Return the values of a column: an array, or a list of Python values."""
    kind, inner = column.type, column
    types = _import_types()
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        kind, inner = kind.value_type, column.combine_chunks().flatten()
    is_plain = types.is_boolean(kind) or types.is_integer(kind) or types.is_floating(kind) or types.is_temporal(kind)
    return column.to_numpy() if is_plain and not column.null_count and not inner.null_count else column.to_pylist()


@contextmanager
def _named(path: str) -> Generator[None, None, None]:
    """A block whose errors name the file that is read."""
    try:
        yield
    except (OSError, ValueError) as error:
        error.add_note(f"while {path} was read")
        raise


def _import_types() -> Any:
    from pyarrow import types

    return types


def _import_parquet() -> Any:
    try:
        from pyarrow import parquet  # slow to import; not every program reads such files
    except ImportError as error:
        raise ImportError("Parquet files are read through pyarrow: pip install 'ember-ml[parquet]'") from error
    return parquet
