"""Make batches of samples on the host: read, transform, collate. The program and its workers do it by the same code."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

from ember_ml.backend.built_in import HOST
from ember_ml.backend.host_arrays import as_host
from ember_ml.backend.random.generator import streaming
from ember_ml.backend.selection import is_active, load, use_backend
from ember_ml.training.sample_streams import SampleStream
from ember_ml.training.sample_trees import is_text, map_arrays

__all__ = ["BatchMaker", "BatchTask", "compute_on_host"]

_BATCHES = 1 << 62  # streams of batches, for collation, lie beyond those of samples


class BatchTask(NamedTuple):
    """What is needed to make one batch."""

    seed: int
    epoch: int
    place: int
    """The place of the first sample in the epoch; the others follow it."""
    items: list[Any]
    """Indices of a map-style dataset, or the samples themselves."""
    is_empty: bool = False
    """Whether no row of the batch is wanted: a rank without a part of it needs the shapes and dtypes."""


class BatchMaker:
    """The data, the transform and the collate function of a loader; ``dataset`` is None where tasks bring samples."""

    def __init__(
        self, dataset: Any, transform: Callable[[Any], Any] | None, collate: Callable[[list[Any]], Any]
    ) -> None:
        self.dataset: Any = dataset
        self._transform, self._collate = transform, collate

    def make(self, task: BatchTask) -> Any:
        """Return a batch of NumPy arrays, in dicts and tuples; texts and the like stay as they are."""
        dataset, transform = self.dataset, self._transform
        stream = SampleStream(task.seed, task.epoch)
        samples = []
        with streaming(stream):
            for place, item in enumerate(task.items, task.place):
                stream.move_to(place)
                sample = item if dataset is None else dataset[item]
                samples.append(sample if transform is None else transform(sample))
            stream.move_to(_BATCHES + task.place)
            batch = map_arrays(_as_host, self._collate(samples))
        return map_arrays(_drop_rows, batch) if task.is_empty else batch


def compute_on_host() -> AbstractContextManager[None]:
    """A block in which ops compute on NumPy, as they do in workers: samples do not depend on who makes them."""
    return nullcontext() if is_active(load(HOST)) else use_backend(HOST)


def _as_host(x: Any) -> Any:
    return x if is_text(x) else as_host(x)


def _drop_rows(x: Any) -> Any:
    return x[:0] if getattr(x, "shape", ()) or type(x) is list else x
