"""Data loaders: batches of tensors of the active backend, in an order that depends on a seed and the epoch alone."""

from __future__ import annotations

import copy
import operator
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ember_ml import ops
from ember_ml.training.prefetching import prefetch_items
from ember_ml.training.sources import make_source

__all__ = ["DataLoader"]


class DataLoader:
    """Batches of data, one epoch for each loop over the loader.

    The data are arrays or tensors of any library, or dataframes (a matrix of the columns) and series, with as many rows
    each: one of them, or several in a tuple or dict, as which the batches come out. They stay where they are until a
    batch of ``batch_size`` rows, by default 32, is made of them. Or the data are an iterable, or a function that
    returns one: PyTorch's ``DataLoader``, a generator function. Its items are batches; with ``batch_size`` they are
    samples, of which batches are made.

    ``shuffle`` puts the rows of arrays into another order in each epoch, the same for equal seeds on every backend; the
    random numbers of the program neither change it nor are changed. ``drop_last`` leaves out a last batch that is
    smaller than the others. ``prefetch`` is the number of batches that a thread makes ahead.

    A loop that ends early leaves its epoch unfinished, and the next one starts that epoch again; :meth:`state` and
    :meth:`restore` go on from within it. A batch may share memory with the data.

    Args:
        data: Arrays, tables, an iterable, or a function that returns one.
        batch_size: The number of rows or samples of a batch.
        shuffle: Whether each epoch has another order.
        drop_last: Whether a smaller last batch is left out.
        seed: Decides the orders.
        prefetch: The number of batches that a thread prepares ahead.

    >>> from ember_ml import ops
    >>> from ember_ml.training import DataLoader
    >>> loader = DataLoader({"x": [[1.0], [2.0], [3.0]], "y": [0, 1, 0]}, batch_size=2)
    >>> [ops.to_numpy(batch["y"]).tolist() for batch in loader], len(loader)
    ([[0, 1], [0]], 2)
    >>> loader = DataLoader(ops.arange(6), batch_size=3, shuffle=True, seed=1)
    >>> [[ops.to_numpy(batch).tolist() for batch in loader] for epoch in range(2)]
    [[[5, 0, 3], [2, 4, 1]], [[5, 1, 2], [0, 4, 3]]]
    """

    def __init__(
        self,
        data: Any,
        batch_size: int | None = None,
        shuffle: bool = False,
        drop_last: bool = False,
        seed: int = 0,
        prefetch: int = 0,
    ) -> None:
        if batch_size is not None and operator.index(batch_size) < 1:
            raise ValueError(f"batch_size is at least 1, not {batch_size}")
        if operator.index(prefetch) < 0:
            raise ValueError(f"prefetch is a number of batches, not {prefetch}")
        ops.Generator(seed)  # raises where ``seed`` is not a valid seed
        self._source = make_source(data, batch_size, drop_last)
        if shuffle and self._source.length is None:
            raise ValueError("only arrays can be shuffled: let the iterable itself give its items in random order")
        self._shuffle, self._prefetch, self._seed = bool(shuffle), prefetch, seed
        self._rank, self._ranks = 0, 1
        self._check: Callable[[str], None] | None = None
        self._epoch = self._batch = self._resumed = 0

    def __len__(self) -> int:
        """Return the number of batches in an epoch; ``TypeError`` for an iterable that does not tell its length."""
        if self._source.count is None:
            raise TypeError("the iterable does not tell how many items it has")
        return self._source.count

    def __iter__(self) -> Iterator[Any]:
        source, epoch, number = self._source, self._epoch, self._resumed
        first = number
        self._batch, self._resumed = number, 0
        fetched = source.fetch(self._order(epoch), number, self._rank, self._ranks)
        if self._prefetch:
            fetched = prefetch_items(map(source.compute, fetched), self._prefetch)
        try:
            for parts in fetched:
                if self._check is not None and number == first and source.digest is not None:
                    self._check(source.digest)
                number += 1
                self._epoch, self._batch = (epoch + 1, 0) if number == source.count else (epoch, number)
                yield source.deliver(parts)
            self._epoch, self._batch = epoch + 1, 0
        finally:
            fetched.close()

    def _order(self, epoch: int) -> Any:
        """Return the order of the rows in an epoch, as an array of the host; None where they stay in theirs."""
        if not self._shuffle:
            return None
        generator = ops.Generator(self._seed)
        generator.skip(epoch)
        return ops.to_numpy(ops.random_permutation(self._source.length, seed=generator))

    def state(self) -> dict[str, int | None]:
        """Return where the loader stands, after the last batch that it gave: plain data for :meth:`restore`.

        >>> from ember_ml.training import DataLoader
        >>> loader = DataLoader([[1.0], [2.0], [3.0]], batch_size=1)
        >>> batch = next(iter(loader))
        >>> loader.state()
        {'seed': 0, 'epoch': 0, 'batch': 1, 'batch_size': 1, 'rows': 3}
        """
        return {
            "seed": self._seed,
            "epoch": self._epoch,
            "batch": self._batch,
            "batch_size": self._source.batch_size,
            "rows": self._source.length,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Let the next loop go on where :meth:`state` was taken, with its seed.

        Inside an epoch the data must have as many rows as they had, and the batches too: else the batches that are left
        would not be the right ones. An iterable is read again from its start.
        """
        try:
            seed, epoch, batch = (operator.index(state[key]) for key in ("seed", "epoch", "batch"))
            held = {"batch_size": state["batch_size"], "rows": state["rows"]}
        except (KeyError, TypeError) as error:
            raise ValueError(f"a loader's state has seed, epoch, batch, batch_size and rows, not {state!r}") from error
        own = {"batch_size": self._source.batch_size, "rows": self._source.length}
        if batch and held != own:
            raise ValueError(f"the state was taken within an epoch of {held}, which {own} cannot go on with")
        if epoch < 0 or batch < 0 or (self._source.count is not None and batch and batch >= self._source.count):
            raise ValueError(f"there is no batch {batch} in an epoch {epoch}: {state!r}")
        ops.Generator(seed)
        self._seed, self._epoch, self._batch, self._resumed = seed, epoch, batch, batch

    def shard(self, rank: int, world_size: int, check: Callable[[str], None] | None = None) -> DataLoader:
        """Return a loader that gives the part number ``rank`` of ``world_size`` of each batch.

        ``check`` is called in each loop over an iterable with a checksum of the first batch, which all ranks must have.

        All parts together are the batch, in its order, whatever their number; so a position that was saved with so many
        ranks can be restored with another number. Parts are as equal as can be; of a batch with fewer rows than ranks,
        some are empty.

        >>> from ember_ml import ops
        >>> from ember_ml.training import DataLoader
        >>> loader = DataLoader(ops.arange(8), batch_size=4)
        >>> [ops.to_numpy(part).tolist() for part in loader.shard(1, 2)]
        [[2, 3], [6, 7]]
        """
        if not 0 <= operator.index(rank) < operator.index(world_size):
            raise ValueError(f"rank is a number from 0 to world_size - 1, not {rank} of {world_size}")
        part = copy.copy(self)
        part._rank, part._ranks, part._check = rank, world_size, check
        return part
