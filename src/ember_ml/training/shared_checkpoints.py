"""Checkpoints of several processes: one writes, or each its pieces; all read the same one, and all raise an error."""

from __future__ import annotations

import contextvars
import hashlib
import json
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ember_ml.backend.host_arrays import as_host
from ember_ml.distributed.pieces import Piece
from ember_ml.errors import CheckpointError
from ember_ml.training import checkpoints
from ember_ml.typing import Tensor

__all__ = ["exists", "read", "write"]

_PAUSE = 1.0  # seconds between two meetings of the processes
_PATIENCE = 3600.0  # seconds for a checkpoint; a file system may hang for ever


def exists(strategy: Any, path: str | PathLike[str]) -> bool:
    """Return whether any of the processes finds a checkpoint in the folder ``path``, damaged or not."""
    is_there = checkpoints.exists(path)
    return is_there if strategy is None else any(strategy.gather_plain(is_there))


def write(
    strategy: Any,
    path: str | PathLike[str],
    tensors: dict[str, dict[str, Tensor]],
    state: dict[str, Any],
    keep: int = 1,
    pieces: Mapping[str, Mapping[str, Piece]] = MappingProxyType({}),
) -> None:
    """Let the first process write; all return when the checkpoint is whole, or all raise ``OSError``.

    Of parts in ``pieces`` each process writes its own. Threads write, and the processes meet every second until all
    have: neither the launcher nor an engine with a time limit takes a long write for a process that stands still.
    """
    if strategy is None or strategy.world_size == 1:
        checkpoints.write(path, tensors, state, keep)
        return
    # MLX 0.32: an array that is not evaluated can be read only in the thread that computed it
    hosts = {part: {name: as_host(x, detach=True) for name, x in named.items()} for part, named in tensors.items()}
    own = {
        part: {name: (as_host(piece.values, detach=True), piece.region) for name, piece in named.items()}
        for part, named in pieces.items()
    }
    is_main = strategy.is_main
    if not pieces:
        _work_together(strategy, is_main, lambda: checkpoints.write(path, hosts, state, keep))
        return
    with ExitStack() as ending:

        def begin() -> dict[str, str]:
            folder = ending.enter_context(checkpoints.writing(path, keep))
            return checkpoints.make_stems(folder, pieces, int(state["steps"]))

        stems = _work_together(strategy, is_main, begin)[0]
        files = _work_together(strategy, True, lambda: checkpoints.write_pieces(path, stems, strategy.rank, own))
        entries = {part: [found[part] for found in files if part in found] for part in pieces}
        _work_together(strategy, is_main, lambda: checkpoints.finish(Path(path), hosts, state, keep, entries))


def _work_together(strategy: Any, does: bool, work: Callable[[], Any]) -> list[Any]:
    """Let a thread of each process that ``does`` it work; return the plain results of all, or raise in all."""
    job = _Job(work) if does else None
    until = time.monotonic() + _PATIENCE
    while True:
        is_done = job is None or job.wait(_PAUSE)
        reason = "" if job is None or job.error is None else str(job.error) or type(job.error).__name__
        if not is_done and time.monotonic() > until:
            is_done, reason = True, f"it takes longer than {_PATIENCE:.0f} s"
        facts = strategy.gather_plain([is_done, reason, job.result if job is not None and is_done else None])
        if all(is_done for is_done, _, _ in facts):
            break
    if job is not None and job.error is not None:
        raise job.error
    failed = next(((rank, reason) for rank, (_, reason, _) in enumerate(facts) if reason), None)
    if failed is not None:
        who = f"the process of rank {failed[0]}" if failed[0] else "the first process"
        raise OSError(f"{who} could not write the checkpoint: {failed[1]}")
    return [result for _, _, result in facts]


class _Job:
    """A thread that works; ``result`` is what it gave, ``error`` what it raised."""

    error: BaseException | None
    result: Any

    def __init__(self, work: Callable[[], Any]) -> None:
        self.error = self.result = None
        context = contextvars.copy_context()  # with the backend of this thread
        self._thread = threading.Thread(target=context.run, args=(self._run, work), daemon=True)
        self._thread.start()

    def _run(self, work: Callable[[], Any]) -> None:
        try:
            self.result = work()
        except BaseException as error:  # raised where the caller waits
            self.error = error

    def wait(self, seconds: float) -> bool:
        """Return whether the work is done, or could not be."""
        self._thread.join(seconds)
        return not self._thread.is_alive()


def read(strategy: Any, path: str | PathLike[str]) -> tuple[dict[str, Mapping[str, Tensor]], dict[str, Any]]:
    """Read the checkpoint in the folder ``path``; processes that do not all find the same one all raise."""
    if strategy is None or strategy.world_size == 1:
        return checkpoints.read(path)
    found: Any = None
    try:
        found = checkpoints.read(path)
        fact = [f"step {found[1].get('steps')}", hashlib.sha256(json.dumps(found[1]).encode()).hexdigest()]
    except CheckpointError as error:
        fact = [str(error), ""]
    facts = strategy.gather_plain(fact)
    if found is None or any(other != fact for other in facts):
        seen = "; ".join(f"rank {rank} finds {words}" for rank, (words, _) in enumerate(facts))
        raise CheckpointError(
            f"the processes do not read one checkpoint from {path}: {seen}. The folder must be shared by all hosts, "
            "and no other job may write to it meanwhile"
        )
    return found
