"""Check the arguments of segment reductions, and plan partial sums, for every backend."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ember_ml.backend import value_checks as checks

__all__ = ["cells", "check_shapes", "partial_sums", "usable_ids"]


def check_shapes(data: Sequence[int], ids: Sequence[int]) -> None:
    """Check that there is one id for each row of the data."""
    if len(ids) != 1 or not data or data[0] != ids[0]:
        raise ValueError(
            f"data of shape {tuple(data)} needs one id for each row, in one dimension; got ids of shape {tuple(ids)}"
        )


def cells(data: Sequence[int], ids: Sequence[int], count: int | None, low: int, high: int) -> tuple[int, bool]:
    """Return the number of segments, and whether all ids, which go from ``low`` to ``high``, are in range.

    An id outside raises ``IndexError``, unless the checks of values are off.
    """
    check_shapes(data, ids)
    if count is None:
        count = max(high + 1, 0)
    if count < 0:
        raise ValueError(f"the number of cells must not be negative, got {count}")
    is_inside = low >= 0 and high < count
    if not is_inside and (checks.enabled or count == 0):
        raise IndexError(f"index {low if low < 0 else high} is out of bounds for {count} cells")
    return count, is_inside


def usable_ids(
    data: Any, ids: Any, count: int | None, read: Callable[[Any], np.ndarray | None], clamp: Callable[[Any, int], Any]
) -> tuple[Any, int]:
    """Return ids that are in range, and the number of segments, where the library itself checks nothing.

    ``read`` gives the values of ids, or None while they are traced; those that may be outside go through ``clamp``.
    """
    values = read(ids) if checks.enabled or count is None else None
    if values is None:
        if count is None:
            raise ValueError("the number of cells cannot be found from ids that are traced; say how many there are")
        check_shapes(data.shape, ids.shape)
        if count == 0 and ids.size:
            raise IndexError("there are ids but no cells")
        return clamp(ids, max(count - 1, 0)), count
    low, high = (int(values.min()), int(values.max())) if ids.size else (0, -1)
    count, is_inside = cells(data.shape, ids.shape, count, low, high)
    return ids if is_inside else clamp(ids, count - 1), count


def partial_sums(values: int, count: int) -> int:
    """Return into how many partial sums to split a sum of floats: a million added one by one is 1 % off.

    There are at most an eighth as many sums as values: their cost is negligible.
    """
    return max(1, min(values // (8 * max(count, 1)), 1000))
