"""The arguments of Fourier transforms, settled alike for every backend."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["check_length", "check_norm", "lengths_and_axes"]

_NORMS = frozenset({"backward", "ortho", "forward"})


def check_norm(norm: str) -> None:
    """One of the three normalizations."""
    if norm not in _NORMS:
        raise ValueError(f"norm must be 'backward', 'ortho' or 'forward', not {norm!r}")


def check_length(n: int) -> None:
    """At least one value."""
    if n < 1:
        raise ValueError(f"a transform needs at least one value, not {n}")


def lengths_and_axes(
    shape: Sequence[int], s: Sequence[int] | None, axes: Sequence[int] | None, halved: bool = False
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The lengths and axes, counted from the front, of a transform along several dimensions.

    With ``halved`` the last axis holds the first half of its values, as for the inverse of a real transform.
    """
    ndim = len(shape)
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
    return lengths, found
