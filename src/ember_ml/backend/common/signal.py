"""Check the arguments of Fourier transforms, frames and correlations, for every backend."""

from __future__ import annotations

import operator
from collections.abc import Sequence

from ember_ml.backend.common.shapes import NO_LISTS, as_shape

__all__ = ["as_length", "check_length", "check_norm", "count_frames", "lengths_and_axes", "overhang"]

_NORMS = frozenset({"backward", "ortho", "forward"})


def check_norm(norm: str) -> None:
    """Check that ``norm`` is one of the three normalizations."""
    if norm not in _NORMS:
        raise ValueError(f"norm must be 'backward', 'ortho' or 'forward', not {norm!r}")


def check_length(n: int) -> None:
    """Check that a transform has at least one element."""
    if n < 1:
        raise ValueError(f"a transform needs at least one value, not {n}")


def lengths_and_axes(
    shape: Sequence[int], s: Sequence[int] | None, axes: Sequence[int] | None, halved: bool = False
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the lengths and axes, counted from the front, of a transform along several dimensions.

    With ``halved`` the last axis holds the first half of its values, as for the inverse of a real transform.
    """
    ndim = len(shape)
    if isinstance(s, NO_LISTS) or isinstance(axes, NO_LISTS):
        raise TypeError(f"s and axes are sequences of ints or None, not {s!r} and {axes!r}")
    if axes is None:
        first = 0 if s is None else ndim - len(s)
        if first < 0:
            raise ValueError(f"s names {len(tuple(s or ()))} lengths for a {ndim}-D tensor")
        axes = range(first, ndim)
    for axis in axes:
        if not -ndim <= axis < ndim:
            raise IndexError(f"axis {axis} is out of range for a {ndim}-D tensor")
    found = tuple(axis % ndim for axis in axes)
    if len(set(found)) != len(found):
        raise ValueError(f"axes {tuple(axes)} name a dimension twice")
    own = [shape[axis] for axis in found]
    if halved and own:
        own[-1] = 2 * (own[-1] - 1)
    if s is None:
        s = own
    elif len(s) != len(found):
        raise ValueError(f"s names {len(s)} lengths for {len(found)} axes")
    lengths = tuple(mine if n == -1 else n for n, mine in zip(s, own, strict=True))
    for n in lengths:
        check_length(n)
    return as_shape(lengths), found


def as_length(value: int, what: str) -> int:
    """Check a number of samples, 1 or more, and return it."""
    length = operator.index(value)
    if length < 1:
        raise ValueError(f"{what} must be 1 or more, not {length}")
    return length


def count_frames(samples: int, frame_length: int, hop_length: int) -> int:
    """Return the number of whole frames in a signal; ``ValueError`` where it is shorter than one."""
    frame_length, hop_length = as_length(frame_length, "frame_length"), as_length(hop_length, "hop_length")
    if samples < frame_length:
        raise ValueError(f"a signal of {samples} samples has no frame of {frame_length}; pad it first")
    return 1 + (samples - frame_length) // hop_length


def overhang(x_shape: Sequence[int], y_shape: Sequence[int], mode: str) -> tuple[int, int]:
    """Return by how many elements the shorter one extends over the start and the end of the longer one."""
    if len(x_shape) != 1 or len(y_shape) != 1 or not x_shape[0] or not y_shape[0]:
        raise ValueError(f"two 1-D tensors that are not empty are needed, not {tuple(x_shape)} and {tuple(y_shape)}")
    shorter = min(x_shape[0], y_shape[0])
    if mode == "valid":
        return 0, 0
    if mode == "same":
        return shorter // 2, shorter - shorter // 2 - 1
    if mode == "full":
        return shorter - 1, shorter - 1
    raise ValueError(f"mode must be 'valid', 'same' or 'full', not {mode!r}")
