"""Worker processes of a data loader: they make batches, which come out in order however many workers there are."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import weakref
from collections.abc import Generator, Iterator
from contextlib import suppress
from multiprocessing.process import BaseProcess
from typing import Any

from ember_ml.errors import WorkerLost
from ember_ml.training.batch_making import BatchMaker, BatchTask
from ember_ml.training.shared_messages import Message, Receiver, Sender, SharedData
from ember_ml.training.worker_process import Failure, run_worker

__all__ = ["WorkerPool"]

_AHEAD = 2  # batches of each worker that are being made, or are ready
_PATIENCE = 5.0  # seconds for a worker to finish what it is doing, before it is killed
_GONE = (
    "the workers of this loop over a data loader are gone: the loader was closed, or this process was forked from the "
    "one that began the loop; begin a new loop"
)


class _Worker:
    """A worker process, as the program sees it."""

    def __init__(self, number: int, data: SharedData) -> None:
        context = multiprocessing.get_context("spawn")
        tasks, its_tasks = context.Pipe()
        batches, its_batches = context.Pipe()
        self._process: BaseProcess = context.Process(
            target=run_worker, args=(its_tasks, its_batches, _AHEAD), name=f"ember-ml worker {number}", daemon=True
        )
        self._process.start()
        its_tasks.close()
        its_batches.close()
        with suppress(OSError):  # a worker that has died already is noticed when its first batch is due
            data.send(tasks)
        self._number = number
        self._sender, self._receiver = Sender(tasks, _AHEAD), Receiver(batches, _AHEAD)
        self._waiting = 0

    def send(self, task: BatchTask) -> None:
        """Give the worker a task; a dead one is noticed when its batch is due."""
        with suppress(OSError):
            self._sender.send(Message(task))
        self._waiting += 1

    def receive(self, batch: int) -> Any:
        """Return the next batch, which has the number ``batch`` in the epoch; raise what the worker raised."""
        try:
            made = self._receiver.receive()
        except (EOFError, OSError, RuntimeError) as error:
            raise WorkerLost(self._obituary(batch)) from error
        self._waiting -= 1
        if type(made) is Failure:
            where = f"in worker {self._number} (process {self._process.pid}), at batch {batch}"
            raise _revive(made, where)
        return made

    def drop_waiting(self) -> None:
        """Receive the batches that nobody wants any more."""
        while self._waiting:
            with suppress(EOFError, OSError, RuntimeError):
                self._receiver.receive()
            self._waiting -= 1

    def _obituary(self, batch: int) -> str:
        self._process.join(_PATIENCE)
        code = self._process.exitcode
        how = "does not answer" if code is None else f"ended with exit code {code}"
        if code is not None and code < 0:
            how = f"was killed by {signal.Signals(-code).name}"
        said = f"worker {self._number} (process {self._process.pid}) {how}, and batch {batch} is not made"
        if code == -signal.SIGKILL:
            return f"{said}; the system kills processes when memory runs out: use fewer workers or smaller batches"
        if code == 1:
            return (
                f"{said}; what it said is above. A script that uses workers must do so below "
                '`if __name__ == "__main__":`, since each worker imports it'
            )
        return said

    def close(self) -> None:
        """Let the worker go; :meth:`join` waits for it."""
        self._sender.close()
        self._receiver.close()

    def join(self) -> None:
        """Wait for the end of the process, which is killed where it takes long."""
        self._process.join(_PATIENCE)
        if self._process.exitcode is None:
            self._process.kill()
            self._process.join()
        self._process.close()


def _revive(failure: Failure, where: str) -> BaseException:
    """Return the exception of a worker, with its traceback as a note."""
    error: Any = None
    if failure.pickled is not None:
        with suppress(Exception):  # its class is in a file that the worker alone has found
            error = pickle.loads(failure.pickled)
    if not isinstance(error, Exception):
        error = RuntimeError(failure.summary)
    error.add_note(f"{where}:\n\n{failure.text}")
    return error


class WorkerPool:
    """Workers for one loop after another; they end with :meth:`close`, or when nothing refers to the pool."""

    def __init__(self, maker: BatchMaker, count: int) -> None:
        try:
            data = SharedData(maker)
        except (AttributeError, TypeError, pickle.PicklingError) as error:
            raise TypeError(
                f"workers are new processes, to which data, transform and collate function are pickled ({error}); "
                "define them at the top level of a file, not as lambdas or inside a function"
            ) from error
        self._workers: list[_Worker] = []
        self._owner = os.getpid()
        self._close = weakref.finalize(self, _close_workers, self._workers, self._owner)
        try:
            self._workers.extend(_Worker(number, data) for number in range(count))
        finally:
            data.close()

    def make(self, tasks: Iterator[BatchTask], first: int) -> Generator[Any, None, None]:
        """Yield the batches of the tasks, in their order; ``first`` is the number of the first one in its epoch.

        An exception is raised where its batch would have been taken, whether the tasks or a worker raised it.
        """
        workers = self._workers
        is_over, failure = False, None
        for worker in workers:
            worker.drop_waiting()
        sent = received = 0
        while True:
            if self.is_closed:
                raise RuntimeError(_GONE)
            while not is_over and sent - received < len(workers) * _AHEAD:
                try:
                    task = next(tasks)
                except StopIteration:
                    is_over = True
                except Exception as error:
                    is_over, failure = True, error
                else:
                    workers[sent % len(workers)].send(task)
                    sent += 1
            if received == sent:
                if failure is None:
                    return
                try:
                    raise failure
                finally:
                    failure = None  # whose traceback has this frame, which would keep the workers
            try:
                batch = workers[received % len(workers)].receive(first + received)
            except Exception as error:
                if self.is_closed:  # meanwhile, by another thread
                    raise RuntimeError(_GONE) from error
                if isinstance(error, WorkerLost):
                    self.close()
                raise
            received += 1
            yield batch
            del batch  # the consumer alone decides how long it lives

    @property
    def is_closed(self) -> bool:
        """Whether the workers have been let go, or are those of the process that this one was forked from."""
        return not self._close.alive or os.getpid() != self._owner

    def close(self) -> None:
        """End the workers."""
        self._close()


def _close_workers(workers: list[_Worker], owner: int) -> None:
    if os.getpid() != owner:  # a fork of the program has no right to them
        return
    for worker in workers:
        worker.close()
    for worker in workers:
        worker.join()
    workers.clear()
