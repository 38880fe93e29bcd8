"""Compute which elements a padded or repeated axis consists of."""

from __future__ import annotations

from typing import Any

import numpy as np

from ember_ml.backend.host_arrays import as_host

__all__ = ["margins", "pad_indices", "repeat_indices"]

_MODES = ("edge", "reflect", "symmetric", "wrap")


def margins(length: int, before: int, after: int, mode: str) -> tuple[slice, slice] | None:
    """Return the slices of an axis that padding adds at each end, reversed unless the mode is "wrap".

    None where slices do not suffice: one element repeated, or more elements than there are.
    """
    _check_padding(length, before, after, mode)
    skipped = 1 if mode == "reflect" else 0
    if mode == "edge" or max(before, after) + skipped > length:
        return None
    if mode == "wrap":
        return slice(length - before, length), slice(0, after)
    return slice(skipped, skipped + before), slice(length - skipped - after, length - skipped)


def pad_indices(length: int, before: int, after: int, mode: str) -> np.ndarray:
    """Return the indices that form an axis of that length after padding."""
    _check_padding(length, before, after, mode)
    if mode == "edge":  # torch.compile can trace it
        return np.clip(np.arange(-before, length + after), 0, length - 1)
    return np.pad(np.arange(length), (before, after), mode=mode)  # type: ignore[call-overload]


def _check_padding(length: int, before: int, after: int, mode: str) -> None:
    if mode not in _MODES:
        raise ValueError(f"there is no mode {mode!r} of padding; the modes are constant, {', '.join(_MODES)}")
    if not length and (before or after):
        raise ValueError(f"an axis without elements cannot be padded by {mode!r}")


def repeat_indices(length: int, repeats: Any) -> np.ndarray:
    """Return the indices that form an axis of that length after each is repeated ``repeats`` times."""
    counts = as_host(repeats)
    if not counts.size:
        counts = counts.astype(np.int64)
    if counts.dtype.kind not in "iu":
        raise TypeError(f"an element is repeated a whole number of times, not {counts.dtype}")
    if counts.ndim > 1 or counts.size not in (1, length):
        raise ValueError(f"{counts.shape} numbers of repeats do not fit {length} elements")
    if counts.size and counts.min() < 0:
        raise ValueError("an element cannot be repeated a negative number of times")
    if counts.size and counts.max() > np.iinfo(np.int64).max:
        raise MemoryError(f"no memory holds {counts.max()} repeats of an element")
    return np.repeat(np.arange(length), counts.astype(np.int64))  # NumPy 2.4: refuses uint64
