"""How many frames a signal has: the same checks for every backend."""

from __future__ import annotations

import operator

__all__ = ["as_length", "count_frames"]


def as_length(value: int, what: str) -> int:
    """A number of samples, 1 or more."""
    length = operator.index(value)
    if length < 1:
        raise ValueError(f"{what} must be 1 or more, not {length}")
    return length


def count_frames(samples: int, frame_length: int, hop_length: int) -> int:
    """The number of whole frames in a signal; ``ValueError`` where it is shorter than one."""
    frame_length, hop_length = as_length(frame_length, "frame_length"), as_length(hop_length, "hop_length")
    if samples < frame_length:
        raise ValueError(f"a signal of {samples} samples has no frame of {frame_length}; pad it first")
    return 1 + (samples - frame_length) // hop_length
