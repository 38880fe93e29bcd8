"""The means and variances of columns, of one batch or of many, exact enough for data far from 0.

A mean is a pair: the rounded mean, and the rest that rounding took away. Subtracting both one after the other leaves
what lies around the mean as exact as the data itself, in whatever dtype the device has.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ember_ml import ops
from ember_ml.nn.features.common.estimator import check_readable
from ember_ml.nn.features.common.rows import Rows
from ember_ml.typing import Tensor

__all__ = ["Moments", "center", "column_moments", "merge_moments"]


class Moments(NamedTuple):
    """Counts, means and variances of columns; NaN is a missing value."""

    count: Any
    """The number of values of each column: an int where all have the same, otherwise an integer tensor."""
    mean: Tensor
    rest: Tensor
    var: Tensor
    """The population variance."""


def center(x: Tensor, mean: Tensor, rest: Tensor) -> Tensor:
    """Subtract the mean from ``x``."""
    return ops.subtract(ops.subtract(x, mean), rest)


def column_moments(rows: Rows) -> Moments:
    """Return the moments of the columns of ``rows``."""
    x = rows.x
    check_readable(x)
    count: Any = x.shape[0]
    present = None
    if rows.may_miss:
        present = ops.logical_not(ops.isnan(x))
        count = ops.count_nonzero(present, axis=0)

    def mean_of(values: Tensor) -> Tensor:
        there = values if present is None else ops.where(present, values, ops.zeros_like(values))
        return ops.divide(ops.sum(there, axis=0), _as_divisor(count, x))

    rough = mean_of(x)
    around = ops.subtract(x, rough)
    shift = mean_of(around)
    var = mean_of(ops.square(ops.subtract(around, shift)))
    mean, rest = _exact_sum(rough, shift)
    return Moments(_unify_count(count), mean, rest, var)


def merge_moments(before: Moments, batch: Moments) -> Moments:
    """Return the moments of the columns of all rows: those of ``before`` and those of ``batch``.

    With n rows of mean m and variance v before, and a batch of k rows of mean m + d and variance w, the mean is
    m + d k / (n + k), and the variance (n v + k w) / (n + k) + d² n k / (n + k)².
    """
    share = _weigh_batch(before.count, batch.count, batch.mean)
    kept = 1.0 - share if isinstance(share, float) else ops.subtract(1.0, share)
    distance = ops.add(ops.subtract(batch.mean, before.mean), ops.subtract(batch.rest, before.rest))
    mean, rest = _exact_sum(before.mean, ops.add(before.rest, ops.multiply(distance, share)))
    within = ops.add(ops.multiply(before.var, kept), ops.multiply(batch.var, share))
    var = ops.add(within, ops.multiply(ops.multiply(ops.square(distance), share), kept))
    if isinstance(share, float):
        return Moments(before.count + batch.count, mean, rest, var)
    # the moments of a column without values are NaN, which must not reach the others
    is_new, is_old = ops.equal(share, 1.0), ops.equal(batch.count, 0)
    parts = zip((mean, rest, var), before[1:], batch[1:], strict=True)
    mean, rest, var = (ops.where(is_old, old, ops.where(is_new, new, both)) for both, old, new in parts)
    return Moments(_unify_count(ops.add(before.count, batch.count)), mean, rest, var)


def _weigh_batch(before: Any, batch: Any, like: Tensor) -> Any:
    """Return the fraction of all rows that are in the batch."""
    if isinstance(before, int) and isinstance(batch, int):
        return batch / (before + batch)
    return ops.divide_no_nan(_as_divisor(batch, like), _as_divisor(ops.add(before, batch), like))


def _as_divisor(count: Any, like: Tensor) -> Any:
    return float(count) if isinstance(count, int) else ops.cast(count, ops.dtype(like))


def _unify_count(count: Any) -> Any:
    """Return the counts as one int where all columns have the same."""
    if isinstance(count, int):
        return count
    least, most = ops.item(ops.min(count)), ops.item(ops.max(count))
    return most if least == most else count


def _exact_sum(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Return ``x + y`` and its rounding error, exactly."""
    total = ops.add(x, y)
    of_y = ops.subtract(total, x)
    of_x = ops.subtract(total, of_y)
    return total, ops.add(ops.subtract(x, of_x), ops.subtract(y, of_y))
