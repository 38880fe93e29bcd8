"""Samplers: which samples an epoch has, and in which order.

A sampler has a length, the number of samples of an epoch, and a method ``order(generator, batch_size)``, which returns
their indices as a list or an array; ``generator`` is the stream of the loader's seed and the epoch. Any object with
these two serves; where it has ``rows`` as well, the data must have as many samples. All here draw on NumPy, so that the
order is the same on every backend.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, Protocol

from ember_ml import ops
from ember_ml.backend.built_in import HOST
from ember_ml.backend.host_arrays import as_host
from ember_ml.backend.selection import use_backend
from ember_ml.typing import DataLike

__all__ = ["BlockSampler", "LengthSampler", "Sampler", "StratifiedSampler", "WeightedSampler"]


class Sampler(Protocol):
    """What a loader asks of a sampler."""

    def __len__(self) -> int: ...

    def order(self, generator: ops.Generator, batch_size: int) -> Any:
        """Return the indices of the samples of an epoch, as a list or an array of one axis."""
        ...


def _read_vector(data: DataLike, name: str) -> Any:
    """Return numbers as an array of the host with one axis."""
    found = as_host(data)
    if found.ndim != 1 or not len(found):
        raise ValueError(f"{name} are one number for each sample, not data of shape {tuple(found.shape)}")
    return found


def _permute(count: int, generator: ops.Generator) -> Any:
    return ops.random_permutation(count, seed=generator)


class WeightedSampler:
    """Draw samples with probabilities in proportion to ``weights``, one for each sample.

    Args:
        weights: Numbers of at least 0.
        count: The number of draws of an epoch; by default as many as there are samples.
        replace: Whether a sample may be drawn more than once.

    >>> from ember_ml import ops
    >>> from ember_ml.training import DataLoader, samplers
    >>> sampler = samplers.WeightedSampler([0.0, 1.0, 0.0, 3.0], count=100)
    >>> (batch,) = DataLoader(ops.arange(4), batch_size=100, sampler=sampler, seed=1)
    >>> drawn = ops.to_numpy(batch).tolist()
    >>> sorted({*drawn}), 60 < drawn.count(3) < 90
    ([1, 3], True)
    """

    rows: int
    """The number of samples of the data."""

    def __init__(self, weights: DataLike, count: int | None = None, replace: bool = True) -> None:
        found = _read_vector(weights, "weights").astype("float64")
        self.rows = len(found)
        total = found.sum()
        if not (found >= 0).all() or not 0 < total < float("inf"):
            raise ValueError("weights are at least 0 and finite, and not all of them 0")
        self._shares = found / total
        self._count = len(found) if count is None else operator.index(count)
        self._replace = replace
        most = int((found > 0).sum())
        if self._count < 1 or (not replace and self._count > most):
            raise ValueError(
                f"{self._count} samples cannot be drawn of {most}" + ("" if replace else " without repeats")
            )

    def __len__(self) -> int:
        return self._count

    def order(self, generator: ops.Generator, batch_size: int) -> Any:
        """Return the indices that were drawn."""
        with use_backend(HOST):
            return ops.random_choice(
                len(self._shares), (self._count,), replace=self._replace, p=self._shares, seed=generator
            )


class StratifiedSampler:
    """Shuffle such that each batch has the classes in nearly the proportions of all the data.

    The samples of each class are spread evenly over the epoch, in random order: the first ``m`` samples of an epoch
    have of each class, whose share is ``p``, the number ``p * m`` to within one and ``p`` times the number of classes.

    >>> from ember_ml import ops
    >>> from ember_ml.training import DataLoader, samplers
    >>> labels = [0] * 8 + [1] * 4
    >>> loader = DataLoader(labels, batch_size=3, sampler=samplers.StratifiedSampler(labels))
    >>> [int(ops.item(ops.sum(batch))) for batch in loader]
    [1, 1, 1, 1]
    """

    rows: int
    """The number of samples of the data."""

    def __init__(self, labels: DataLike) -> None:
        self._labels = _read_vector(labels, "labels")
        self.rows = len(self._labels)

    def __len__(self) -> int:
        return len(self._labels)

    def order(self, generator: ops.Generator, batch_size: int) -> Any:
        """Return the indices of all samples."""
        with use_backend(HOST):
            shuffled = _permute(len(self), generator)
            by_class = shuffled[ops.argsort(self._labels[shuffled], stable=True)]
            classes, counts = ops.unique(self._labels[by_class], return_counts=True)
            starts = ops.random_uniform((len(classes),), dtype="float64", seed=generator)
            class_of = ops.repeat(ops.arange(len(classes)), counts)
            firsts = ops.subtract(ops.cumsum(counts), counts)
            rank = ops.subtract(ops.arange(len(self)), ops.take(firsts, class_of))
            place = ops.divide(ops.add(rank, ops.take(starts, class_of)), ops.take(counts, class_of))
            return by_class[ops.argsort(place, stable=True)]


class LengthSampler:
    """Put samples of similar length into a batch, so that little is padded; the order is random otherwise.

    The samples are shuffled, each ``window`` batches of them sorted by length, and the batches of all of them shuffled.

    Args:
        lengths: The length of each sample.
        window: The number of batches that are sorted at once: few keep the batches more random, many pad less.

    >>> from ember_ml import ops
    >>> from ember_ml.training import DataLoader, samplers
    >>> lengths = [5, 1, 5, 1, 5, 1]
    >>> loader = DataLoader(lengths, batch_size=3, sampler=samplers.LengthSampler(lengths))
    >>> sorted(ops.to_numpy(batch).tolist() for batch in loader)
    [[1, 1, 1], [5, 5, 5]]
    """

    rows: int
    """The number of samples of the data."""

    def __init__(self, lengths: DataLike, window: int = 100) -> None:
        self._lengths = _read_vector(lengths, "lengths")
        self.rows = len(self._lengths)
        if operator.index(window) < 1:
            raise ValueError(f"window is a number of batches, not {window}")
        self._window = window

    def __len__(self) -> int:
        return len(self._lengths)

    def order(self, generator: ops.Generator, batch_size: int) -> Any:
        """Return the indices of all samples; a smaller last batch stays the last one, and is of mixed lengths."""
        with use_backend(HOST):
            shuffled = _permute(len(self), generator)
            batches = len(self) // batch_size
            whole, rest = shuffled[: batches * batch_size], shuffled[batches * batch_size :]
            if not batches:
                return rest
            places = ops.argsort(self._lengths[whole], stable=True)  # by length, and then by window
            places = places[ops.argsort(ops.floor_divide(places, self._window * batch_size), stable=True)]
            rows = ops.reshape(whole[places], (batches, batch_size))[_permute(batches, generator)]
            return ops.concatenate([ops.reshape(rows, (-1,)), rest])


class BlockSampler:
    """Shuffle blocks of samples, and the samples of a few blocks at a time: for data that is read by blocks.

    Files of samples, and the row groups of Parquet, are read fast one after another and slowly in random order.

    Args:
        lengths: The number of samples in each block, in the order of the dataset: its ``block_lengths``.
        window: The number of blocks whose samples are mixed.

    >>> from ember_ml import ops
    >>> from ember_ml.training import DataLoader, samplers
    >>> sampler = samplers.BlockSampler([3, 3, 3], window=1)
    >>> loader = DataLoader(ops.arange(9), batch_size=3, sampler=sampler)
    >>> sorted(sorted(ops.to_numpy(batch).tolist()) for batch in loader)
    [[0, 1, 2], [3, 4, 5], [6, 7, 8]]
    """

    rows: int
    """The number of samples of the data."""

    def __init__(self, lengths: Sequence[int], window: int = 4) -> None:
        self._lengths = [operator.index(length) for length in lengths]
        self.rows = sum(self._lengths)
        if operator.index(window) < 1:
            raise ValueError(f"window is a number of blocks, not {window}")
        if min(self._lengths, default=0) < 0 or not sum(self._lengths):
            raise ValueError(f"lengths are the numbers of samples of blocks, not {list(lengths)}")
        self._window = window

    def __len__(self) -> int:
        return sum(self._lengths)

    def order(self, generator: ops.Generator, batch_size: int) -> Any:
        """Return the indices of all samples."""
        ends, end = [], 0
        for length in self._lengths:
            end += length
            ends.append(end)
        with use_backend(HOST):
            blocks = ops.to_numpy(_permute(len(ends), generator)).tolist()
            parts = []
            for start in range(0, len(blocks), self._window):
                chosen = blocks[start : start + self._window]
                rows = ops.concatenate(
                    [ops.arange(ends[block] - self._lengths[block], ends[block]) for block in chosen]
                )
                parts.append(rows[_permute(len(rows), generator)])
            return ops.concatenate(parts)
