"""Statistics of series: numbers that describe what lies along the last axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ember_ml import ops
from ember_ml.features.base import FeatureExtractor
from ember_ml.nn.features.common.rows import read_floats
from ember_ml.typing import Tensor, TensorLike

__all__ = ["STATISTICS", "SeriesStatistics", "center_series", "describe"]


class SeriesStatistics(FeatureExtractor):
    """Numbers that describe each series: those along ``axis`` go, and a last axis of the statistics comes.

    Of ``(..., time)`` comes ``(..., statistics)``, in the order of ``statistics``:

    - "mean", "median", "min", "max", "sum", "rms" (root of the mean square);
    - "std", "var": around the mean, of the population;
    - "skewness", "kurtosis": the third and fourth standardized moments, the latter less the 3 of a normal
      distribution; 0 for a constant series;
    - "slope": of the straight line that fits best, per step; 0 for a single value;
    - "crossings": the part of the steps at which the series crosses its mean.

    >>> from ember_ml import ops
    >>> from ember_ml.features import SeriesStatistics
    >>> ops.to_numpy(SeriesStatistics(("mean", "max", "slope"))([[1.0, 3.0, 5.0], [2.0, 2.0, 2.0]])).tolist()
    [[3.0, 5.0, 2.0], [2.0, 2.0, 0.0]]
    """

    def __init__(self, statistics: Sequence[str] = ("mean", "std", "min", "max"), axis: int = -1) -> None:
        self.statistics = statistics
        self.axis = axis

    def extract(self, data: TensorLike) -> Tensor:
        """Return the statistics of each series in ``data``."""
        x, dtype = read_floats(data)
        return ops.cast(describe(ops.moveaxis(x, self.axis, -1), self.statistics), dtype)


def describe(x: Tensor, statistics: Sequence[str]) -> Tensor:
    """Return the named statistics of what lies along the last axis, along a new last axis."""
    if isinstance(statistics, str) or not statistics:
        raise ValueError(f"statistics are a sequence of names such as ('mean', 'std'), not {statistics!r}")
    for name in statistics:
        if name not in STATISTICS:
            raise ValueError(f"there is no statistic {name!r}; there are {', '.join(STATISTICS)}")
    if not x.shape[-1]:
        raise ValueError(f"series without values have no statistics; the data has shape {tuple(x.shape)}")
    return ops.stack([STATISTICS[name](x) for name in statistics], axis=-1)


def _subtract_first(x: Tensor) -> Tensor:
    """Subtract the first value of each series: exact for values far from 0, and 0 for constants."""
    return ops.subtract(x, x[..., :1])


def center_series(x: Tensor) -> Tensor:
    """Subtract the mean of each series; constants become exactly 0."""
    moved = _subtract_first(x)
    return ops.subtract(moved, ops.mean(moved, axis=-1, keepdims=True))


def _standardized_moment(x: Tensor, order: int) -> Tensor:
    around = center_series(x)
    deviation = ops.sqrt(ops.mean(ops.square(around), axis=-1, keepdims=True))
    return ops.mean(ops.power(ops.divide_no_nan(around, deviation), order), axis=-1)


def _kurtosis(x: Tensor) -> Tensor:
    found = _standardized_moment(x, 4)
    return ops.where(ops.equal(found, 0.0), found, ops.subtract(found, 3.0))


def _slope(x: Tensor) -> Tensor:
    steps = center_series(ops.arange(x.shape[-1], dtype=ops.dtype(x), device=ops.get_device(x)))
    return ops.divide_no_nan(ops.sum(ops.multiply(center_series(x), steps), axis=-1), ops.sum(ops.square(steps)))


def _count_crossings(x: Tensor) -> Tensor:
    is_above = ops.greater(center_series(x), 0.0)
    crossed = ops.not_equal(is_above[..., 1:], is_above[..., :-1])
    counted = ops.cast(ops.count_nonzero(crossed, axis=-1), ops.dtype(x))
    return ops.divide(counted, float(max(x.shape[-1] - 1, 1)))


STATISTICS: dict[str, Callable[[Tensor], Tensor]] = {
    "mean": lambda x: ops.mean(x, axis=-1),
    "median": lambda x: ops.median(x, axis=-1),
    "min": lambda x: ops.min(x, axis=-1),
    "max": lambda x: ops.max(x, axis=-1),
    "sum": lambda x: ops.sum(x, axis=-1),
    "rms": lambda x: ops.sqrt(ops.mean(ops.square(x), axis=-1)),
    "std": lambda x: ops.std(_subtract_first(x), axis=-1),
    "var": lambda x: ops.var(_subtract_first(x), axis=-1),
    "skewness": lambda x: _standardized_moment(x, 3),
    "kurtosis": _kurtosis,
    "slope": _slope,
    "crossings": _count_crossings,
}
