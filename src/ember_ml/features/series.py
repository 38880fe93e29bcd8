"""Features of time series: windows of them, and what each step knows of the steps before it.

:class:`Windows` cuts along an axis. :class:`Lags` and :class:`RollingStatistics` take rows that are steps in time,
``(time,)``, ``(time, features)`` or batches ``(..., time, features)``, and give as many columns for each feature as
there are lags or statistics, those of the first feature first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Integral
from typing import Any

from ember_ml import ops
from ember_ml.backend.host_arrays import unbox_objects
from ember_ml.features.base import FeatureExtractor
from ember_ml.features.statistics import describe
from ember_ml.nn.features.common.rows import read_floats
from ember_ml.typing import Tensor, TensorLike

__all__ = ["Lags", "RollingStatistics", "Windows"]


class Windows(FeatureExtractor):
    """Pieces of ``length`` steps, each ``hop`` steps after the one before; ``axis`` becomes two, windows and steps.

    Of ``(..., time)`` comes ``(..., windows, length)``; of ``(time, features)`` with ``axis=0``, as models of sequences
    take it, ``(windows, length, features)``. Steps at the end that fill no window are left out. The dtype stays.

    >>> from ember_ml import ops
    >>> from ember_ml.features import Windows
    >>> ops.to_numpy(Windows(3, hop=2)([1, 2, 3, 4, 5, 6])).tolist()
    [[1, 2, 3], [3, 4, 5]]
    """

    def __init__(self, length: int, hop: int = 1, axis: int = -1) -> None:
        self.length = length
        self.hop = hop
        self.axis = axis

    def extract(self, data: TensorLike) -> Tensor:
        """Return the windows of ``data``."""
        return ops.frame(unbox_objects(data), self.length, self.hop, self.axis)


class Lags(FeatureExtractor):
    """What each step knows of the past: the values that many steps before it, for each of ``lags``.

    ``lags`` is a sequence of numbers of steps, or one number n for 1 to n. Where the past begins, there is ``fill``;
    with ``fill=None`` those steps are left out. The dtype stays, but NaN makes integers float32.

    >>> from ember_ml import ops
    >>> from ember_ml.features import Lags
    >>> ops.to_numpy(Lags((0, 2), fill=0)([5, 6, 7, 8])).tolist()
    [[5, 0], [6, 0], [7, 5], [8, 6]]
    >>> ops.to_numpy(Lags(2, fill=None)([5, 6, 7, 8])).tolist()
    [[6, 5], [7, 6]]
    """

    def __init__(self, lags: int | Sequence[int] = 1, fill: float | None = math.nan) -> None:
        self.lags = lags
        self.fill = fill

    def extract(self, data: TensorLike) -> Tensor:
        """Return the values before each step of ``data``."""
        lags = self._list_lags()
        x = _as_steps(ops.convert_to_tensor(unbox_objects(data)))
        if isinstance(self.fill, float) and ops.dtype(x).kind != "float":
            x = ops.cast(x, "float32")
        count, longest = x.shape[-2], max(lags)
        if self.fill is None:
            if count <= longest:
                raise ValueError(f"{count} steps have no step that knows {longest} steps before it")
            shifted = [x[..., longest - lag : count - lag, :] for lag in lags]
        else:
            shifted = [_prepend(x[..., : max(count - lag, 0), :], min(lag, count), self.fill) for lag in lags]
        return _join_columns(ops.stack(shifted, axis=-1))

    def _list_lags(self) -> list[int]:
        lags: Any = self.lags
        found = list(range(1, int(lags) + 1) if isinstance(lags, Integral) else lags)
        if not found or any(not isinstance(lag, Integral) or lag < 0 for lag in found):
            raise ValueError(f"lags are numbers of steps into the past, at least one, from 0; not {self.lags!r}")
        return [int(lag) for lag in found]


class RollingStatistics(FeatureExtractor):
    """Statistics of the last ``length`` steps at each step, itself included.

    They are those of :class:`SeriesStatistics`. Before ``length`` steps have passed the value is ``fill``; with
    ``fill=None`` those steps are left out. The dtype is that of the data, float32 where that is no float.

    >>> from ember_ml import ops
    >>> from ember_ml.features import RollingStatistics
    >>> ops.to_numpy(RollingStatistics(2, ("mean", "max"), fill=None)([1.0, 3.0, 2.0])).tolist()
    [[2.0, 3.0], [2.5, 3.0]]
    """

    def __init__(
        self,
        length: int,
        statistics: Sequence[str] = ("mean", "std", "min", "max"),
        fill: float | None = math.nan,
    ) -> None:
        self.length = length
        self.statistics = statistics
        self.fill = fill

    def extract(self, data: TensorLike) -> Tensor:
        """Return the statistics at each step of ``data``."""
        x, dtype = read_floats(data)
        x = _as_steps(x)
        count = x.shape[-2]
        if self.fill is not None and count < self.length:  # pad, so that there is at least one window
            x = _prepend(x, self.length - count, self.fill)
        frames = ops.moveaxis(ops.frame(x, self.length, 1, axis=-2), -2, -1)
        found = _join_columns(describe(frames, self.statistics))
        if self.fill is None:
            return ops.cast(found, dtype)
        kept = max(count - self.length + 1, 0)
        return ops.cast(_prepend(found[..., :kept, :], count - kept, self.fill), dtype)


def _as_steps(x: Tensor) -> Tensor:
    """Return ``x`` as steps of features; a vector is one feature."""
    if not len(x.shape):
        raise ValueError("a series has steps, and a single number has none")
    return ops.expand_dims(x, 1) if len(x.shape) == 1 else x


def _prepend(x: Tensor, count: int, fill: Any) -> Tensor:
    """Put ``count`` steps of ``fill`` before ``x``."""
    *batch, _, width = x.shape
    before = ops.full((*batch, count, width), fill, dtype=ops.dtype(x), device=ops.get_device(x))
    return ops.concatenate([before, x], axis=-2)


def _join_columns(x: Tensor) -> Tensor:
    """Return the last two axes as one."""
    *batch, features, parts = x.shape
    return ops.reshape(x, (*batch, features * parts))
