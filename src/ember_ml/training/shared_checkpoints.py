"""Checkpoints that processes write together, and while they train: all read the same one, and all raise an error."""

from __future__ import annotations

import atexit
import contextvars
import errno
import hashlib
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from functools import partial
from os import PathLike
from types import MappingProxyType
from typing import Any

from ember_ml.backend.host_arrays import as_host
from ember_ml.backend.host_copies import HostCopies
from ember_ml.distributed import heartbeat
from ember_ml.distributed.pieces import Piece, SavedTensors
from ember_ml.errors import CheckpointError
from ember_ml.training import checkpoints
from ember_ml.training.checkpoint_stores import open_store
from ember_ml.typing import Tensor

__all__ = ["Saving", "begin", "exists", "read", "write"]

_PAUSE = 1.0  # seconds between two meetings of the processes
_NICENESS = 19  # of the threads that write; while the processes wait for them, they have the processor all the same
_PATIENCE = 3600.0  # seconds for a checkpoint; a file system may hang for ever
_DELAY = 10.0  # seconds until a file of another host is seen at the latest; network file systems cache names

Parts = Mapping[str, Mapping[str, Tensor]]
Pieces = Mapping[str, Mapping[str, Piece]]


def exists(strategy: Any, path: str | PathLike[str]) -> bool:
    """Return whether a process finds a checkpoint at ``path``, damaged or not; if one cannot look, all raise."""
    if strategy is None or strategy.world_size == 1:
        return checkpoints.exists(path)
    is_there, reason = False, ""
    try:
        is_there = checkpoints.exists(path)
    except OSError as error:
        reason = str(error)
    facts = strategy.gather_plain([is_there, reason])
    for rank, (_, words) in enumerate(facts):
        if words:
            raise OSError(f"the process of rank {rank} cannot look for a checkpoint: {words}")
    return any(found for found, _ in facts)


def write(
    strategy: Any,
    path: str | PathLike[str],
    tensors: Parts,
    state: dict[str, Any],
    keep: int = 1,
    pieces: Pieces = MappingProxyType({}),
) -> None:
    """Let the first process write, and each its own ``pieces``; return when the checkpoint is whole, or raise in all.

    Threads write, and the processes meet every second until all have: neither the launcher nor an engine with a time
    limit takes a long write for a process that stands still.
    """
    if strategy is None or strategy.world_size == 1:
        checkpoints.write(path, tensors, state, keep)
    else:
        _start(strategy, path, _Hosts(tensors, pieces, None), state, keep).finish()


def begin(
    strategy: Any,
    path: str | PathLike[str],
    tensors: Parts,
    state: dict[str, Any],
    keep: int,
    pieces: Pieces,
    copies: HostCopies,
) -> Saving:
    """Copy the tensors to ``copies`` and begin to write them, as :func:`write` does, in a thread of each process.

    The tensors and the state may change at once; ``copies`` may be used again when the checkpoint is whole.
    """
    frozen = json.loads(json.dumps(state))
    saving = _start(strategy, path, _Hosts(tensors, pieces, copies), frozen, keep)
    atexit.register(saving.leave)  # a program may end while its last checkpoint is written
    return saving


class _Hosts:
    """The tensors of a checkpoint in memory of the host: whole ones by part, and the pieces of this process."""

    def __init__(self, tensors: Parts, pieces: Pieces, copies: HostCopies | None) -> None:
        self.are_copies = copies is not None
        """Whether training goes on meanwhile."""
        named = {f"{part}/{name}": x for part, found in tensors.items() for name, x in found.items()}
        named |= {f"{part}/{name}": x.values for part, found in pieces.items() for name, x in found.items()}
        # here: MLX 0.32: an array that is not evaluated can be read only in the thread that computed it
        hosts = {key: as_host(x, detach=True) for key, x in named.items()} if copies is None else copies.take(named)
        self.tensors = {part: {name: hosts[f"{part}/{name}"] for name in found} for part, found in tensors.items()}
        self.pieces = {
            part: {name: (hosts[f"{part}/{name}"], x.region) for name, x in found.items()}
            for part, found in pieces.items()
        }


def _start(strategy: Any, path: str | PathLike[str], hosts: _Hosts, state: dict[str, Any], keep: int) -> Saving:
    """Start the threads that write a checkpoint."""
    if strategy is None or strategy.world_size == 1:
        return Saving(None, lambda _: checkpoints.write(path, hosts.tensors, state, keep), gives_way=hosts.are_copies)
    if not hosts.pieces:
        write_all = partial(checkpoints.write, path, hosts.tensors, state, keep)
        return Saving(strategy, lambda _: write_all(), strategy.is_main, hosts.are_copies)
    ending = ExitStack()

    def open_folder(_: Saving) -> checkpoints.Stems:
        store = ending.enter_context(checkpoints.writing(path, keep))
        return checkpoints.make_stems(store, hosts.pieces, int(state["steps"]))

    stems = checkpoints.Stems(*Saving(strategy, open_folder, strategy.is_main).finish()[0])

    def write_part(saving: Saving) -> None:
        with ending:
            own = checkpoints.write_pieces(path, stems, strategy.rank, hosts.pieces)
            if strategy.is_main:
                notes = [own, *(saving.read_note(path, stems, rank) for rank in range(1, strategy.world_size))]
                entries = {part: [found[part] for found in notes if part in found] for part in hosts.pieces}
                checkpoints.finish(open_store(path), hosts.tensors, state, keep, entries)

    return Saving(strategy, write_part, gives_way=hosts.are_copies)


class Saving:
    """Work of threads of the processes, one in each that ``does`` it, while the processes go on.

    The threads exchange nothing by the processes' engine, which is in use: what one needs of another is in files.
    """

    def __init__(
        self, strategy: Any, work: Callable[[Saving], Any], does: bool = True, gives_way: bool = False
    ) -> None:
        self._strategy, self._gives_way = strategy, gives_way
        self._error: BaseException | None = None
        self._result: Any = None
        self._until, self._limit = time.monotonic() + _PATIENCE, _PATIENCE
        self._thread: threading.Thread | None = None
        if does:
            context = contextvars.copy_context()  # with the backend of this thread
            self._thread = threading.Thread(target=context.run, args=(self._run, work), daemon=True)
            self._thread.start()

    @property
    def has_failed(self) -> bool:
        """Whether this process could not do its part, which :meth:`finish` then tells all."""
        return self._error is not None

    def __reduce__(self) -> Any:
        return type(None), ()  # a copy of a trainer has nothing to wait for

    def _run(self, work: Callable[[Saving], Any]) -> None:
        if self._gives_way and sys.platform == "linux":  # where each thread has a priority: training goes before
            with suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICENESS)
        try:
            self._result = work(self)
        except BaseException as error:  # raised where the caller waits
            self._error = error

    def read_note(self, path: str | PathLike[str], stems: checkpoints.Stems, rank: int) -> dict[str, Any]:
        """Wait until the process ``rank`` has written its pieces, and return its note of them."""
        began, store = time.monotonic(), open_store(path)
        while True:
            is_late = time.monotonic() > min(self._until, began + self._limit)
            note = checkpoints.read_note(store, stems, rank)
            if note is not None:
                return note
            if is_late:
                words = f"rank {rank} has not written its part, or to another folder: all hosts must share the folder"
                raise OSError(errno.ETIMEDOUT, words)
            time.sleep(store.patience)

    def _wait(self, seconds: float) -> bool:
        """Return whether the work of this process is done, or could not be."""
        if self._thread is not None:
            self._thread.join(seconds)
        return self._thread is None or not self._thread.is_alive()

    def finish(self) -> list[Any]:
        """Return the plain results of all processes when all are done, or raise in all; every process calls this."""
        atexit.unregister(self.leave)
        if self._strategy is None:
            while not self._wait(_PAUSE):
                heartbeat.progress()
            if self._error is not None:
                raise self._error
            return [self._result]
        results, failed = self._meet()
        if failed is None:
            return results
        rank, reason = failed
        if rank == self._strategy.rank and self._error is not None:
            raise self._error
        who = f"the process of rank {rank}" if rank else "the first process"
        raise OSError(f"{who} could not write the checkpoint: {reason}")

    def _meet(self) -> tuple[list[Any], tuple[int, str] | None]:
        """Meet the other processes every second until each is done; return the results, and who failed first and why.

        That is the one whose error was told first: that it has no note of its pieces is an error of another one.
        """
        until = time.monotonic() + _PATIENCE
        failed = None
        while True:
            is_done = self._wait(_PAUSE)
            reason = "" if self._error is None else str(self._error) or type(self._error).__name__
            if not is_done and time.monotonic() > until:
                is_done, reason = True, f"it takes longer than {_PATIENCE:.0f} s"
            facts = self._strategy.gather_plain([is_done, reason, self._result if is_done else None])
            if failed is None:
                failed = next(((rank, reason) for rank, (_, reason, _) in enumerate(facts) if reason), None)
            if all(is_done for is_done, _, _ in facts):
                return [result for _, _, result in facts], failed
            if failed is not None:
                self._until = 0.0
            elif all(is_done for is_done, _, _ in facts[1:]):
                self._until = min(self._until, time.monotonic() + _DELAY)

    def leave(self) -> None:
        """Wait for the work of this process, and not for the others, where training ends by an error; raise nothing."""
        atexit.unregister(self.leave)
        self._limit = _DELAY / 2
        until = time.monotonic() + _PATIENCE
        while not self._wait(_PAUSE) and time.monotonic() < until:
            heartbeat.progress()


def read(strategy: Any, path: str | PathLike[str]) -> tuple[dict[str, SavedTensors], dict[str, Any]]:
    """Read the checkpoint in the folder ``path``; processes that do not all find the same one all raise."""
    if strategy is None or strategy.world_size == 1:
        return checkpoints.read(path)
    found: Any = None
    try:
        found = checkpoints.read(path)
        fact = [f"step {found[1].get('steps')}", hashlib.sha256(json.dumps(found[1]).encode()).hexdigest()]
    except (CheckpointError, OSError) as error:
        fact = [str(error), ""]
    facts = strategy.gather_plain(fact)
    if found is None or any(other != fact for other in facts):
        seen = "; ".join(f"rank {rank} finds {words}" for rank, (words, _) in enumerate(facts))
        raise CheckpointError(
            f"the processes do not read one checkpoint from {path}: {seen}. The folder must be shared by all hosts, "
            "and no other job may write to it meanwhile"
        )
    return found
