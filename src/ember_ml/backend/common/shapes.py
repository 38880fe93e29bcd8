"""Check shapes and axes from callers and convert them to tuples of ints, for every backend."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

from ember_ml.backend.common.axes import axis_of

__all__ = [
    "LENGTHS",
    "NO_LISTS",
    "NO_ODD_LENGTH",
    "as_axes",
    "as_shape",
    "broadcast",
    "check_classes",
    "grid",
    "new_shape",
    "pad_pairs",
    "roll_pairs",
    "sections",
]

# The condition, for the hot path, that a new shape has no length below -1; of two lengths the library itself checks the
# second, since their product must fit. ``min`` alone would take twice as long.
NO_ODD_LENGTH = "type(shape) is tuple and shape and (len(shape) < 3 and shape[0] > 0 or min(shape) >= -1)"
LENGTHS: set[type] = {int}
"""The types of lengths that are taken as they are. A backend adds its type of lengths that vary from call to call of a
traced program: converting one to an int would make it a constant of the program."""
NO_LISTS = (str, bytes, bytearray, set, frozenset, dict)
"""What can be iterated and is no list of numbers: each byte of ``b"x"`` would be one, and sets have no order."""
_MOST_ELEMENTS = 2**48  # beyond what any machine holds, and below what overflows a library's arithmetic


def as_shape(shape: Any) -> tuple[int, ...]:
    """Convert one int or a sequence of ints to a shape; negative lengths raise ``ValueError``."""
    lengths = _ints(shape, "a shape")
    if any(length < 0 for length in lengths):
        raise ValueError(f"the shape {lengths} has a negative length")
    # a comparison with a length that varies would limit it
    if all(type(length) is int for length in lengths) and math.prod(lengths) > _MOST_ELEMENTS:
        raise MemoryError(f"a tensor of shape {lengths} does not fit into any memory")
    return lengths


def new_shape(shape: Any) -> tuple[int, ...]:
    """Convert a shape for ``reshape``, in which one length may be -1."""
    lengths = _ints(shape, "a shape")
    if any(length < -1 for length in lengths) or lengths.count(-1) > 1:
        raise ValueError(f"the shape {lengths} has negative lengths; one -1 may stand for whatever is left")
    return lengths


def _ints(values: Any, what: str) -> tuple[int, ...]:
    if isinstance(values, NO_LISTS):
        raise TypeError(f"{what} is an int or a sequence of ints, not {values!r}")
    try:
        if hasattr(values, "__index__") and getattr(values, "shape", ()) == ():
            values = (values,)
        return tuple(value if type(value) in LENGTHS else operator.index(value) for value in values)
    except TypeError as error:
        raise TypeError(f"{what} is an int or a sequence of ints, not {values!r}") from error


def as_axes(axes: Any, ndim: int) -> tuple[int, ...]:
    """Count one or several distinct axes from the front."""
    found = tuple(axis_of(axis, ndim) for axis in _ints(axes, "an axis"))
    if len(set(found)) < len(found):
        raise ValueError(f"the axes {axes} name one axis twice")
    return found


def check_classes(target: Sequence[int], output: Sequence[int], axis: int) -> None:
    """Raise ``ValueError`` unless ``target`` has the shape of ``output`` without ``axis``."""
    rows = (*output[:axis], *output[axis + 1 :])
    if tuple(target) != rows:
        raise ValueError(f"the classes have the shape {tuple(target)}; the output without its axis has {rows}")


def broadcast(shapes: Iterable[tuple[int, ...]]) -> tuple[int, ...]:
    """Return the shape to which these shapes broadcast; ``ValueError`` where they do not."""
    shapes = [tuple(shape) for shape in shapes]
    result: list[int] = []
    for place in range(1, max(map(len, shapes), default=0) + 1):
        lengths = {shape[-place] for shape in shapes if len(shape) >= place} - {1}
        if len(lengths) > 1:
            raise ValueError(f"the shapes {', '.join(map(str, shapes))} do not broadcast")
        result.append(lengths.pop() if lengths else 1)
    return tuple(reversed(result))


def grid(arrays: list[Any], indexing: str) -> list[tuple[Any, tuple[int, ...], tuple[int, ...]]]:
    """Return each array of a grid with the shape in which it has its own axis, and the shape of the grid."""
    if indexing not in ("xy", "ij"):
        raise ValueError(f"the indexing of a grid is 'xy' or 'ij', not {indexing!r}")
    if any(x.ndim > 1 for x in arrays):
        raise ValueError("a grid is made of vectors")
    lengths = [x.shape[0] if x.ndim else 1 for x in arrays]
    places = list(range(len(arrays)))
    if indexing == "xy" and len(arrays) > 1:
        places[:2] = [1, 0]
    shape = tuple(lengths[place] for place in places)
    return [
        (x, tuple(lengths[i] if axis == places[i] else 1 for axis in range(len(arrays))), shape)
        for i, x in enumerate(arrays)
    ]


_MOST_EMPTY_PARTS = 1 << 20
"""As many parts a short axis may be split into: beyond, a number meant as something else would fill the memory."""


def sections(parts: Any, length: int, equal: bool) -> list[slice]:
    """Return the slices that split an axis of that length: into so many parts, or at these positions.

    With ``equal`` a number of parts that does not divide the length raises ``ValueError``; otherwise the first parts
    are longer.
    """
    if hasattr(parts, "__index__") and getattr(parts, "shape", ()) == ():
        count = operator.index(parts)
        if count <= 0:
            raise ValueError(f"a tensor is split into 1 part or more, not {count}")
        if equal and length % count:
            raise ValueError(f"an axis of length {length} does not split into {count} equal parts; array_split does it")
        if count > max(length, _MOST_EMPTY_PARTS):
            raise ValueError(f"an axis of length {length} does not split into {count} parts, nearly all of them empty")
        short, longer = divmod(length, count)
        ends = [index * short + min(index, longer) for index in range(count + 1)]
    else:
        # positions mean what they mean in x[a:b]: negative ones count from the end, large ones are clamped
        ends = [0, *_ints(parts, "a position to split at"), length]
    ends = [min(max(end + length, 0) if end < 0 else end, length) for end in ends]
    return [slice(a, b, 1) for a, b in pairwise(ends)]


def roll_pairs(shift: Any, axis: Any, ndim: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return a shift for each axis, and the axes; a single one of either is repeated."""
    shifts = _ints(shift, "a shift")
    axes = tuple(axis_of(one, ndim) for one in _ints(axis, "an axis"))
    if len(shifts) != len(axes) and 1 not in (len(shifts), len(axes)):
        raise ValueError(f"{len(shifts)} shifts do not fit {len(axes)} axes")
    longest = max(len(shifts), len(axes)) if shifts and axes else 0
    return (shifts * longest)[:longest] if len(shifts) == 1 else shifts, axes * longest if len(axes) == 1 else axes


def pad_pairs(pad_width: Any, ndim: int) -> list[tuple[int, int]]:
    """Return how many elements to add before and after, for each axis."""
    if hasattr(pad_width, "__index__") and getattr(pad_width, "shape", ()) == ():
        pairs = [(operator.index(pad_width),) * 2] * ndim
    else:
        if isinstance(pad_width, NO_LISTS):
            raise TypeError(f"the widths are an int, a pair, or a pair for each axis, not {pad_width!r}")
        pairs = [_ints(part, "a width") for part in pad_width]
        if len(pairs) == 2 and all(len(part) == 1 for part in pairs) and not any(map(_is_sequence, pad_width)):
            pairs = [(pairs[0][0], pairs[1][0])]
        pairs = [part * 2 if len(part) == 1 else part for part in pairs]
        if len(pairs) == 1:
            pairs = pairs * ndim
    if len(pairs) != ndim or any(len(part) != 2 for part in pairs):
        raise ValueError(f"the widths {pad_width} do not fit {ndim} dimensions: one pair per axis is needed")
    if any(width < 0 for part in pairs for width in part):
        raise ValueError(f"a tensor cannot be padded by negative widths: {pad_width}")
    return [(part[0], part[1]) for part in pairs]


def _is_sequence(value: Any) -> bool:
    return hasattr(value, "__len__") and getattr(value, "shape", None) != ()
