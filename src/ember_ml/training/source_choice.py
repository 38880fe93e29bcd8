"""Choose the source of a data loader by the kind of its data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ember_ml.backend.common.loader_shares import is_torch_loader
from ember_ml.training.sample_sources import RowSamples, Samples, SampleStreamSource
from ember_ml.training.samplers import Sampler
from ember_ml.training.sources import Rows, Stream, is_table

__all__ = ["make_source"]


def make_source(
    data: Any,
    batch_size: int | None,
    drop_last: bool,
    transform: Callable[[Any], Any] | None,
    collate: Callable[[list[Any]], Any] | None,
    by_samples: bool,
    sampler: Sampler | None,
) -> Rows | Stream | Samples | SampleStreamSource:
    """Return the source that reads arrays and tables, a map-style dataset or an iterable.

    ``by_samples``: batches are made sample by sample; a list is then one of samples. A ``sampler`` decides the number
    of samples of an epoch.
    """
    size = 32 if batch_size is None else batch_size
    length = None if sampler is None else len(sampler)
    if isinstance(data, tuple | dict) or _is_array(data) or is_table(data):
        rows = Rows(data, size, drop_last, length)
        _check_sampler(sampler, rows.rows)
        if not by_samples:
            return rows
        return Samples(RowSamples(rows.on_host()), size, drop_last, transform, collate, rows.length)
    if type(data) is list and not by_samples:
        rows = Rows(data, size, drop_last, length)
        _check_sampler(sampler, rows.rows)
        return rows
    if is_torch_loader(data) and batch_size is not None:
        raise ValueError("PyTorch's DataLoader makes batches itself: leave batch_size out")
    if type(data) is list or _is_map_style(data, batch_size):
        _check_sampler(sampler, len(data))
        return Samples(data, size, drop_last, transform, collate, len(data) if length is None else length)
    if length is not None:
        raise ValueError("a sampler is for data with indices: arrays, or a dataset with a length, and a batch_size")
    if not (callable(data) or isinstance(data, Iterable)):
        raise TypeError(
            "data are arrays, a table, a dataset with a length and indices, an iterable or a function that gives one, "
            f"not {type(data).__name__}"
        )
    if not by_samples:
        return Stream(data, batch_size, drop_last)
    if batch_size is None:
        raise ValueError("transform, collate and workers are for samples: give the batch_size that they are put into")
    return SampleStreamSource(data, batch_size, drop_last, transform, collate)


def _check_sampler(sampler: Sampler | None, rows: int) -> None:
    """Raise where a sampler was made for other data: some samples would never be drawn."""
    own = getattr(sampler, "rows", rows)
    if own != rows:
        raise ValueError(f"the sampler was made for {own} samples, and the data have {rows}")


def _is_map_style(data: Any, batch_size: int | None) -> bool:
    """Whether the data are a dataset of samples: with indices and a length, and no iterable of batches."""
    if isinstance(data, str | bytes | Mapping) or not (hasattr(data, "__getitem__") and hasattr(data, "__len__")):
        return False
    return batch_size is not None or not isinstance(data, Iterable)


def _is_array(data: Any) -> bool:
    # a ``Dataset`` of Hugging Face has a shape as well: its numbers of rows and columns
    return hasattr(data, "shape") and hasattr(data, "dtype")
