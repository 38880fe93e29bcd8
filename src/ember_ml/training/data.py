"""Data loaders: batches of tensors of the active backend, in an order that depends on a seed and the epoch alone."""

from __future__ import annotations

import copy
import operator
from collections.abc import Callable, Generator, Iterator, Mapping
from typing import Any

from ember_ml import ops
from ember_ml.backend.host_arrays import as_host
from ember_ml.training.batch_making import BatchTask, compute_on_host
from ember_ml.training.prefetching import prefetch_items
from ember_ml.training.sample_sources import Samples, SampleStreamSource
from ember_ml.training.sample_streams import sampler_generator
from ember_ml.training.samplers import Sampler
from ember_ml.training.source_choice import make_source
from ember_ml.training.workers import WorkerPool

__all__ = ["DataLoader"]


class DataLoader:
    """Batches of data, one epoch for each loop over the loader.

    The data are arrays or tensors of any library, or dataframes (a matrix of the columns) and series, with as many rows
    each: one of them, or several in a tuple or dict, as which the batches come out. They stay where they are until a
    batch of ``batch_size`` rows, by default 32, is made of them. Or they are a dataset with ``len(data)`` samples
    ``data[index]``. Or they are an iterable, or a function that returns one: PyTorch's ``DataLoader``, a generator
    function. Its items are batches; with ``batch_size`` they are samples, of which batches are made.

    ``shuffle`` puts rows and samples into another order in each epoch, the same for equal seeds on every backend; the
    random numbers of the program neither change it nor are changed. A ``sampler`` decides the order itself, see
    ``ember_ml.training.samplers``. ``drop_last`` leaves out a last batch that is smaller than the others. ``prefetch``
    is the number of batches that a thread makes ahead.

    ``transform`` is called with each sample, or each row, and ``collate`` with the list of the samples of a batch:
    :func:`ember_ml.training.collation.stack` unless told otherwise. ``workers`` is the number of processes that read,
    transform and collate; any number gives the same batches in the same order. For that, samples are made on NumPy,
    whatever backend is active, and random numbers without a seed, as of ``ops.random_uniform(3)``, come from a stream
    of the loader's seed, the epoch and the sample's place in it. With any of the three a list is one of samples.

    Workers start with the first loop, and stay until :meth:`close` or until the loader is gone. They are new
    processes: data and functions are pickled, with one copy of their arrays for all of them; a script that uses workers
    does so below ``if __name__ == "__main__":``. What a worker raises is raised here, its traceback as a note; a worker
    that dies is a ``WorkerLost``.

    A loop that ends early leaves its epoch unfinished, and the next one starts that epoch again; :meth:`state` and
    :meth:`restore` go on from within it. A batch may share memory with the data.

    Args:
        data: Arrays, tables, a dataset, an iterable, or a function that returns one.
        batch_size: The number of rows or samples of a batch.
        shuffle: Whether each epoch has another order.
        drop_last: Whether a smaller last batch is left out.
        seed: Decides the orders.
        prefetch: The number of batches that a thread prepares ahead.
        transform: What is done to each sample.
        collate: What makes a batch of a list of samples.
        sampler: Decides which samples an epoch has, and their order.
        workers: The number of worker processes.

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
        *,
        transform: Callable[[Any], Any] | None = None,
        collate: Callable[[list[Any]], Any] | None = None,
        sampler: Sampler | None = None,
        workers: int = 0,
    ) -> None:
        for name, count in (("batch_size", batch_size), ("prefetch", prefetch), ("workers", workers)):
            if count is not None and not hasattr(count, "__index__"):
                raise TypeError(f"{name} is an integer, not {count!r:.60}")
        batch_size = None if batch_size is None else operator.index(batch_size)  # plain numbers, for the state
        if batch_size is not None and batch_size < 1:
            raise ValueError(f"batch_size is at least 1, not {batch_size}")
        if operator.index(prefetch) < 0:
            raise ValueError(f"prefetch is a number of batches, not {prefetch}")
        if operator.index(workers) < 0:
            raise ValueError(f"workers is a number of processes, not {workers}")
        ops.Generator(seed)  # raises where ``seed`` is not a valid seed
        if shuffle and sampler is not None:
            raise ValueError("shuffle and sampler both decide the order: give one of them")
        by_samples = transform is not None or collate is not None or workers > 0
        self._source = make_source(data, batch_size, drop_last, transform, collate, by_samples, sampler)
        if shuffle and self._source.length is None:
            raise ValueError(
                "only arrays and datasets with indices can be shuffled: let the iterable itself give its items in "
                "random order"
            )
        self._sampler, self._workers = sampler, workers
        self._pool: WorkerPool | None = None
        self._lent: list[WorkerPool] = []  # those of loops that are under way
        self._shuffle, self._prefetch, self._seed = bool(shuffle), prefetch, operator.index(seed)
        self._rank, self._ranks = 0, 1
        self._check: Callable[[str], None] | None = None
        self._epoch = self._batch = self._resumed = 0

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {
            "_pool": None,
            "_lent": [],
        }  # no two loaders share workers, nor do they go to another process

    def __len__(self) -> int:
        """Return the number of batches in an epoch; ``TypeError`` for an iterable that does not tell its length."""
        if self._source.count is None:
            raise TypeError("the iterable does not tell how many items it has")
        return self._source.count

    def __iter__(self) -> Iterator[Any]:
        source, epoch, number = self._source, self._epoch, self._resumed
        first = number
        self._batch, self._resumed = number, 0
        fetched = self._fetch(epoch, number, self._order(epoch))
        if self._prefetch:
            fetched = prefetch_items(fetched, self._prefetch)
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

    def _fetch(self, epoch: int, number: int, order: Any) -> Generator[Any, None, None]:
        """Yield what is needed of each batch, from that number on: the work that a thread may do ahead."""
        source = self._source
        if isinstance(source, Samples | SampleStreamSource):
            tasks = source.tasks(self._seed, epoch, order, number, self._rank, self._ranks)
            yield from self._make(source, tasks, number)
            return
        for parts in source.fetch(epoch, order, number, self._rank, self._ranks):
            yield source.compute(parts) if self._prefetch else parts

    def _make(
        self, source: Samples | SampleStreamSource, tasks: Generator[BatchTask, None, None], first: int
    ) -> Generator[Any, None, None]:
        """Yield batches that are made sample by sample, here or by workers."""
        if not self._workers:
            for task in tasks:
                with compute_on_host():
                    batch = source.maker.make(task)
                yield batch
            return
        pool, self._pool = self._pool, None  # a second loop beside this one has workers of its own
        if pool is None or pool.is_closed:
            pool = WorkerPool(source.maker, self._workers)
        self._lent.append(pool)
        try:
            yield from pool.make(tasks, first)
        finally:
            tasks.close()
            self._lent.remove(pool)
            if self._pool is None:
                self._pool = pool
            else:
                pool.close()

    def _order(self, epoch: int) -> Any:
        """Return the order of the rows in an epoch, as an array of the host; None where they stay in theirs."""
        if self._sampler is not None:
            order = self._sampler.order(sampler_generator(self._seed, epoch), self._source.batch_size or 1)
            found = as_host(order)
            if found.shape != (self._source.length,) or found.dtype.kind not in "iu":
                raise ValueError(
                    f"the sampler has {self._source.length} samples in an epoch, and its order is no vector of as many "
                    f"indices, but {found.dtype} of shape {found.shape}"
                )
            return found
        if not self._shuffle:
            return None
        generator = ops.Generator(self._seed)
        generator.skip(epoch)
        return ops.to_numpy(ops.random_permutation(self._source.length, seed=generator))

    def close(self) -> None:
        """End the worker processes, if there are any; the next loop starts new ones, and one under way cannot go on.

        >>> from ember_ml.training import DataLoader
        >>> loader = DataLoader([1.0, 2.0])
        >>> loader.close()
        """
        for pool in (self._pool, *self._lent):
            if pool is not None:
                pool.close()
        self._pool = None

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

        All parts together are the batch, in its order, whatever their number; so a position can be restored with
        another number of ranks than it was saved with. Parts are as equal as can be; of a batch with fewer rows than
        ranks, some are empty.

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
