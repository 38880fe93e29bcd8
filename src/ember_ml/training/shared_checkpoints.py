"""Checkpoints of several processes: one writes, all read the same checkpoint, and an error is raised in all."""

from __future__ import annotations

import hashlib
import json
from os import PathLike
from typing import Any

from ember_ml.errors import CheckpointError
from ember_ml.training import checkpoints
from ember_ml.typing import Tensor

__all__ = ["exists", "read", "write"]


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
    """Let the first process write; all return when the checkpoint is whole, or all raise ``OSError``."""
    error: OSError | None = None
    if strategy is None or strategy.is_main:
        try:
            checkpoints.write(path, tensors, state, keep)
        except OSError as raised:
            error = raised
    reason = str(error) if error is not None else None
    if strategy is not None:
        reason = strategy.gather_plain(reason)[0]
    if error is not None:
        raise error
    if reason is not None:
        raise OSError(f"the first process could not write the checkpoint: {reason}")


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
