"""Positions along an axis, computed on the host: which elements a padded or repeated axis is made of."""

from __future__ import annotations

from typing import Any

import numpy as np

from ember_ml.backend.host import as_host

__all__ = ["padded", "repeated"]

_MODES = ("edge", "reflect", "symmetric", "wrap")


def padded(length: int, before: int, after: int, mode: str) -> np.ndarray:
    """The positions that an axis of that length has after padding."""
    if mode not in _MODES:
        raise ValueError(f"there is no mode {mode!r} of padding; the modes are constant, {', '.join(_MODES)}")
    if not length and (before or after):
        raise ValueError(f"an axis without elements cannot be padded by {mode!r}")
    return np.pad(np.arange(length), (before, after), mode=mode)


def repeated(length: int, repeats: Any) -> np.ndarray:
    """The positions that an axis of that length has when each is repeated as often as ``repeats`` says."""
    counts = as_host(repeats)
    if not counts.size:
        counts = counts.astype(np.int64)
    if counts.dtype.kind not in "iu":
        raise TypeError(f"an element is repeated a whole number of times, not {counts.dtype}")
    if counts.ndim > 1 or counts.size not in (1, length):
        raise ValueError(f"{counts.shape} numbers of repeats do not fit {length} elements")
    if counts.size and counts.min() < 0:
        raise ValueError("an element cannot be repeated a negative number of times")
    return np.repeat(np.arange(length), counts)
