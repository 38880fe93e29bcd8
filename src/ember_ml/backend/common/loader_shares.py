"""The parts that processes have of other libraries' data loaders, whatever backend is active."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ember_ml.backend.capabilities import deferred

__all__ = ["is_torch_loader", "open_share"]

_torch_loaders = deferred("ember_ml.backend.torch.loaders")


def is_torch_loader(data: Any) -> bool:
    """Whether the data are a ``DataLoader`` of PyTorch, which need not be imported for that."""
    return any(
        base.__name__ == "DataLoader" and base.__module__.startswith("torch.utils.data") for base in type(data).__mro__
    )


def open_share(data: Any, epoch: int, start: int, rank: int, ranks: int) -> tuple[Any, Iterator[Any]] | None:
    """Return the share of a process in the batches of a loader from ``start`` of an epoch on, and those batches.

    None where the data are no loader that can be split: each process then reads all of them. The share has a ``digest``
    of the first batch's order once that was read, and of each batch in order whether it ``is_empty``: then its rows are
    not wanted.
    """
    return _torch_loaders.open_share(data, epoch, start, rank, ranks) if is_torch_loader(data) else None
