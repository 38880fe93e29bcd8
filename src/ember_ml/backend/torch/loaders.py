"""Shares of PyTorch's data loaders: each process loads its own samples of every batch, and no others."""

from __future__ import annotations

import hashlib
import weakref
from collections import deque
from collections.abc import Iterator
from itertools import islice
from typing import Any

import torch
from torch.utils.data import DataLoader

__all__ = ["Share", "open_share"]

_made: weakref.WeakKeyDictionary[Any, dict[tuple[int, int], DataLoader[Any]]] = weakref.WeakKeyDictionary()
"""The loaders of the shares, by those that they are shares of: workers that stay do so from one epoch to the next."""


class Share:
    """The indices of one process's part of each batch of a loader, as a sampler of batches.

    The order of an epoch is that which the loader itself has in it, as far as it comes from generators that the loader
    or its sampler were given. Of a batch with fewer samples than processes some have none: theirs is the first sample,
    for its shapes and dtypes, of which the caller must drop the rows.
    """

    digest: str | None
    """A checksum of the first batch of indices, which all processes must have."""

    def __init__(self, loader: DataLoader[Any], rank: int, ranks: int) -> None:
        self._batches, self._generator = loader.batch_sampler, loader.generator
        given = [loader.generator, getattr(loader.sampler, "generator", None)]
        self._generators: list[torch.Generator] = [x for x in given if isinstance(x, torch.Generator)]
        self._rank, self._ranks = rank, ranks
        self._begun = -1
        """The last epoch that was begun."""
        self._states: dict[int, list[torch.Tensor]] = {0: [x.get_state() for x in self._generators]}
        """Where the generators were at the beginning of the first epoch, and of that one."""
        self._start, self.digest = 0, None
        self.is_empty: deque[bool] = deque()
        """Of each batch that was begun, in order, whether this process has none of it."""

    def begin(self, epoch: int, start: int) -> None:
        """Let the next loop begin with batch ``start`` of an epoch; no sample of those before is loaded."""
        known, following = self._begun, self._begun + 1
        if epoch <= known:  # go back to where it began, or to the first epoch
            known = following = epoch if epoch == known else 0
            for generator, state in zip(self._generators, self._states[known], strict=True):
                generator.set_state(state)
        for _ in range(following, epoch):
            deque(self._draw_order(), maxlen=0)
        states = [x.get_state() for x in self._generators]
        self._begun, self._states = epoch, {0: self._states[0], epoch: states}
        self._start, self.digest = start, None
        self.is_empty.clear()

    def _draw_order(self) -> Iterator[Any]:
        # the loader itself draws a seed for its workers before its sampler begins
        torch.empty((), dtype=torch.int64).random_(generator=self._generator)
        yield from self._batches or ()

    def __iter__(self) -> Iterator[list[Any]]:
        for found in islice(self._draw_order(), self._start, None):
            indices = list(found)
            if self.digest is None:
                self.digest = hashlib.sha256(repr(indices).encode()).hexdigest()
            count = len(indices)
            part = indices[count * self._rank // self._ranks : count * (self._rank + 1) // self._ranks]
            self.is_empty.append(not part)
            yield part or indices[:1]


def open_share(loader: Any, epoch: int, start: int, rank: int, ranks: int) -> tuple[Share, Iterator[Any]] | None:
    """Return the share of a process in a loader's batches from ``start`` of an epoch on, and those batches.

    None for a loader of which only the batches themselves are known: of an iterable dataset, or with a loop of its own.
    """
    is_plain = isinstance(loader, DataLoader) and type(loader).__iter__ is DataLoader.__iter__
    if not is_plain or loader.batch_sampler is None or not hasattr(loader.dataset, "__getitem__"):
        return None
    known = _made.setdefault(loader, {})
    if (rank, ranks) not in known:
        known[rank, ranks] = DataLoader(
            loader.dataset,
            batch_sampler=Share(loader, rank, ranks),
            num_workers=loader.num_workers,
            collate_fn=loader.collate_fn,
            pin_memory=loader.pin_memory,
            timeout=loader.timeout,
            worker_init_fn=loader.worker_init_fn,
            multiprocessing_context=loader.multiprocessing_context,
            generator=torch.Generator(),  # for the seeds of workers
            prefetch_factor=loader.prefetch_factor,
            persistent_workers=loader.persistent_workers,
        )
    made = known[rank, ranks]
    share: Any = made.batch_sampler
    seeds: Any = made.generator
    share.begin(epoch, start)
    # workers of different processes and epochs must not draw the same numbers
    seed = (loader.generator or torch.default_generator).initial_seed()
    seeds.manual_seed((seed + 1_000_003 * (rank + 1) + 1_000_000_007 * epoch) % 2**63)
    return share, iter(made)
