"""Checkpoints of several processes: one writes, all read the same checkpoint, and an error is raised in all."""

from __future__ import annotations

import contextvars
import hashlib
import json
import threading
import time
from os import PathLike
from typing import Any

from ember_ml.backend.host_arrays import as_host
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
) -> None:
    """Let the first process write; all return when the checkpoint is whole, or all raise ``OSError``.

    A thread writes, and the processes meet every second until it has: neither the launcher nor an engine with a time
    limit takes a long write for a process that stands still.
    """
    if strategy is None or strategy.world_size == 1:
        checkpoints.write(path, tensors, state, keep)
        return
    writer = _Writer(path, tensors, state, keep) if strategy.is_main else None
    until = time.monotonic() + _PATIENCE
    while True:
        is_done = writer is None or writer.wait(_PAUSE)
        reason = "" if writer is None or writer.error is None else str(writer.error)
        if not is_done and time.monotonic() > until:
            is_done, reason = True, f"it takes longer than {_PATIENCE:.0f} s"
        is_done, reason = strategy.gather_plain([is_done, reason])[0]
        if is_done:
            break
    if writer is not None and writer.error is not None:
        raise writer.error
    if reason:
        raise OSError(f"the first process could not write the checkpoint: {reason}")


class _Writer:
    """A thread that writes a checkpoint; ``error`` is what it raised."""

    error: BaseException | None

    def __init__(self, path: Any, tensors: dict[str, dict[str, Tensor]], state: dict[str, Any], keep: int) -> None:
        # MLX 0.32: an array that is not evaluated can be read only in the thread that computed it
        hosts = {part: {name: as_host(x, detach=True) for name, x in named.items()} for part, named in tensors.items()}
        self.error = None
        context = contextvars.copy_context()  # with the backend of this thread
        self._thread = threading.Thread(target=context.run, args=(self._write, path, hosts, state, keep), daemon=True)
        self._thread.start()

    def _write(self, *arguments: Any) -> None:
        try:
            checkpoints.write(*arguments)
        except BaseException as error:  # raised where the caller waits
            self.error = error

    def wait(self, seconds: float) -> bool:
        """Return whether the checkpoint has been written, or could not be."""
        self._thread.join(seconds)
        return not self._thread.is_alive()


def read(strategy: Any, path: str | PathLike[str]) -> tuple[dict[str, dict[str, Tensor]], dict[str, Any]]:
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
