"""Interpret index keys by NumPy's rules, on shapes alone.

A key is read in two steps. Its integers, slices, ``None`` and ``...`` are basic: they keep, drop or add dimensions. Its
index tensors and masks then replace dimensions of the result by the dimensions to which they broadcast; :class:`Plan`
says where those go.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

__all__ = [
    "Plan",
    "bounds",
    "broadcast_along",
    "broadcast_indices",
    "coordinates",
    "flat_positions",
    "plan",
    "shape_of_values",
    "spans",
    "split_basic",
]

_WHOLE = slice(None)


class Plan(NamedTuple):
    """The two steps of reading a key.

    ``basic``: ints in range, slices in range, and None, one for each dimension of the tensor or new one.
    ``advanced``: index tensors and masks, each with the first dimension that it indexes after the basic step; a mask
    indexes as many as it has, one without dimensions adds a new one. ``position``: where the dimensions to which they
    broadcast go in the result.
    """

    basic: tuple[Any, ...]
    advanced: tuple[tuple[int, Any], ...]
    position: int

    @property
    def is_whole(self) -> bool:
        """Whether the basic step does not change the tensor."""
        return all(item is _WHOLE for item in self.basic)

    @property
    def reverses(self) -> bool:
        """Whether a slice of the basic step goes backwards."""
        return any(isinstance(item, slice) and (item.step or 1) < 0 for item in self.basic)


def plan(key: tuple[Any, ...], shape: Sequence[int], is_mask: Callable[[Any], bool]) -> Plan:
    """Plan how to read ``key`` on a tensor of ``shape``; ``IndexError`` where it does not fit."""
    basic: list[Any] = []
    advanced: list[tuple[int, Any]] = []
    made = kept = 0  # dimensions made by the basic step, kept in the result
    position = -1
    is_open = True  # whether all indices so far are adjacent
    for item, axis, width in spans(key, len(shape), is_mask):
        if item is None or item is Ellipsis or type(item) is slice:
            new = [None] if item is None else [_within(item, shape[axis])] if type(item) is slice else [_WHOLE] * width
            basic.extend(new)
            made, kept = made + len(new), kept + len(new)
            is_open = is_open and position < 0
            continue
        # by NumPy's rules the dimensions of adjacent indices stay in place, others go to the front
        position = kept if position < 0 else position if is_open else 0
        if type(item) is int:
            basic.append(_count_from_front(item, shape[axis], axis))
            continue
        advanced.append((made, item))
        basic.extend(_before_mask(tuple(item.shape), tuple(shape[axis : axis + width])) if is_mask(item) else [_WHOLE])
        made += width or 1
    return Plan(tuple(basic), tuple(advanced), max(position, 0))


def spans(key: tuple[Any, ...], ndim: int, is_mask: Callable[[Any], bool]) -> list[tuple[Any, int, int]]:
    """Return each item of the key with the first dimension that it indexes and how many; together all ``ndim``."""
    widths = [_width(item, is_mask) for item in key]
    count = sum(widths)
    if count > ndim:
        raise IndexError(f"too many indices: {count} for a tensor of {ndim} dimensions")
    places = [number for number, item in enumerate(key) if item is Ellipsis]
    if len(places) > 1:
        raise IndexError("an index has one '...' at most")
    if places:
        widths[places[0]] = ndim - count
    elif count < ndim:
        key, widths = (*key, Ellipsis), [*widths, ndim - count]
    return [(item, sum(widths[:number]), widths[number]) for number, item in enumerate(key)]


def _width(item: Any, is_mask: Callable[[Any], bool]) -> int:
    if item is None or item is Ellipsis:
        return 0
    return 1 if type(item) in (int, slice) or not is_mask(item) else len(item.shape)


def _within(item: slice, size: int) -> slice:
    """Clamp bounds and step of a slice to the dimension."""
    if item.start is None and item.stop is None and item.step is None:
        return _WHOLE
    start, stop, step = bounds(item, size)
    count = len(range(start, stop, step))
    if count == 0:
        return slice(0, 0, 1)
    if count == 1:
        return slice(start, start + 1, 1)
    return slice(start, stop if stop >= 0 else None, step)


def are_disjoint(one: tuple[Any, ...], other: tuple[Any, ...], shape: Sequence[int]) -> bool:
    """Whether two keys of ints, slices, None and Ellipsis certainly have no element in common; False where unsure."""
    for first, second, size in zip(one, other, shape, strict=False):
        if first is None or second is None or first is Ellipsis or second is Ellipsis:
            return False
        a, b = _range(first, size), _range(second, size)
        if not a or not b or max(a[0], a[-1]) < min(b[0], b[-1]) or max(b[0], b[-1]) < min(a[0], a[-1]):
            return True
    return False


def _range(item: int | slice, size: int) -> range:
    """The indices that one item of a key selects."""
    if isinstance(item, slice):
        return range(*bounds(item, size))
    index = item + size if item < 0 else item
    return range(index, index + 1)


def bounds(item: slice, size: int) -> tuple[int, int, int]:
    """Compute ``item.indices(size)``."""
    # torch 2.6: torch.compile cannot trace it
    step = 1 if item.step is None else operator.index(item.step)
    if step == 0:
        raise ValueError("slice step cannot be zero")
    low, high = (0, size) if step > 0 else (-1, size - 1)
    first, last = (low, high) if step > 0 else (high, low)
    start = first if item.start is None else _clamp_bound(item.start, size, low, high)
    return start, last if item.stop is None else _clamp_bound(item.stop, size, low, high), step


def _clamp_bound(index: Any, size: int, low: int, high: int) -> int:
    """Count a bound of a slice from the front and clamp it between ``low`` and ``high``."""
    index = operator.index(index)
    return min(max(index + size if index < 0 else index, low), high)


def _count_from_front(index: int, size: int, axis: int) -> int:
    """Count an index from the front."""
    if not -size <= index < size:
        raise IndexError(f"index {index} is out of bounds for axis {axis} with size {size}")
    return index + size if index < 0 else index


def _before_mask(mask: tuple[int, ...], shape: tuple[int, ...]) -> list[Any]:
    """Return the basic items before a mask: none, unless a length of the mask is 0 and that of the tensor is not."""
    if any(own not in (0, length) for own, length in zip(mask, shape, strict=True)):
        raise IndexError(f"the mask of shape {mask} does not fit the dimensions {shape} that it selects from")
    return [_WHOLE if own == length else slice(0, 0, 1) for own, length in zip(mask, shape, strict=True)] or [None]


def broadcast_indices(shapes: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """Return the shape to which index tensors broadcast; ``IndexError`` where they do not."""
    result: list[int] = []
    for back in range(max([len(shape) for shape in shapes])):
        sizes = {shape[-1 - back] for shape in shapes if back < len(shape)}
        wide = sizes - {1}
        if len(wide) > 1:
            raise IndexError(f"indices of the shapes {[tuple(shape) for shape in shapes]} do not broadcast to one")
        result.append(wide.pop() if wide else 1)
    return tuple(reversed(result))


def shape_of_values(values: Sequence[int], target: Sequence[int]) -> tuple[int, ...]:
    """Drop the leading ones from the shape of ``values`` that ``target`` has no dimension for.

    ``ValueError`` where values of that shape do not broadcast to the target.
    """
    extra = max(len(values) - len(target), 0)
    own = tuple(values)[extra:]
    leading_fits = all(size == 1 for size in values[:extra])
    if not leading_fits or any(size not in (1, to) for size, to in zip(reversed(own), reversed(target), strict=False)):
        raise ValueError(f"values of shape {tuple(values)} do not broadcast to the selected shape {tuple(target)}")
    return own


def split_basic(basic: tuple[Any, ...], shape: Sequence[int]) -> tuple[tuple[Any, ...], list[int]]:
    """Split a basic key into its form and the first index along each dimension.

    Compiled functions take the latter as an argument, so that one program serves ``x[0]``, ``x[1]`` and so on. The form
    has None for a new dimension, 0 for an index, and for a slice its length, step and the length that it spans.
    """
    form: list[Any] = []
    starts: list[int] = []
    axis = 0
    for item in basic:
        if item is None:
            form.append(None)
            continue
        size = shape[axis]
        axis += 1
        if type(item) is int:
            starts.append(item)
            form.append(0)
            continue
        start, stop, step = item.indices(size)
        count = len(range(start, stop, step))
        last = start + (count - 1) * step
        starts.append(0 if not count else min(start, last))
        form.append((count, step, abs(last - start) + 1 if count else 0))
    return tuple(form), starts


def broadcast_along(x: Sequence[int], indices: Sequence[int], axis: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the shapes to which a tensor and its indices along ``axis`` broadcast: equal but for that dimension."""
    if len(x) != len(indices):
        raise ValueError(f"indices of shape {tuple(indices)} do not have as many dimensions as the tensor, {tuple(x)}")
    if not -len(x) <= axis < len(x):
        raise IndexError(f"axis {axis} is out of bounds for {len(x)} dimensions")
    axis %= len(x)
    wide_x, wide_indices = list(x), list(indices)
    for other in range(len(x)):
        if other == axis or x[other] == indices[other]:
            continue
        if 1 not in (x[other], indices[other]):
            raise ValueError(f"indices of shape {tuple(indices)} do not broadcast with {tuple(x)} beside axis {axis}")
        wide_x[other] = wide_indices[other] = indices[other] if x[other] == 1 else x[other]
    return tuple(wide_x), tuple(wide_indices)


def coordinates(flat: Any, shape: Sequence[int]) -> tuple[Any, ...]:
    """Return the coordinates of flat positions, one integer tensor for each dimension."""
    found = []
    for size in reversed(shape):
        found.append(flat % max(size, 1))
        flat = flat // max(size, 1)
    return tuple(reversed(found))


def flat_positions(indices: Sequence[Any], shape: Sequence[int]) -> Any:
    """Return the flat positions of coordinates."""
    flat = indices[0]
    for index, size in zip(indices[1:], shape[1:], strict=True):
        flat = flat * size + index
    return flat
