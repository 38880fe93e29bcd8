"""Running sums and correlation, on MLX."""

from __future__ import annotations

import mlx.core as mx

from ember_ml.backend.common.axes import axis_of
from ember_ml.backend.common.signal import overhang
from ember_ml.backend.contract import ByDType
from ember_ml.backend.mlx.bodies.reductions import SHORT, accumulating
from ember_ml.backend.mlx.empty_reductions import sum_along
from ember_ml.backend.mlx.graph_probe import is_vectorizing
from ember_ml.backend.mlx.vmap_rules import mappable
from ember_ml.core import dtypes as dt


def _cumsum(x: mx.array, axis: int | None, dtype: None) -> mx.array:
    if axis is None:
        x, axis = mx.flatten(x), 0
    if x.size <= SHORT or x.dtype not in (mx.float32, mx.complex64):
        return mx.cumsum(x, axis)
    return _cumsum_along(x, axis_of(axis, x.ndim))


def _cumsum_along(x: mx.array, axis: int) -> mx.array:
    """Sum within short runs, then add to each the running sum of the runs before it."""
    # MLX 0.32: adds one element after the other, which loses digits (mlx#488)
    n = x.shape[axis]
    if n <= SHORT:
        return mx.cumsum(x, axis)
    count = -(-n // SHORT)
    widths = [(0, count * SHORT - n) if i == axis else (0, 0) for i in range(x.ndim)]
    runs = mx.cumsum(mx.unflatten(mx.pad(x, widths), axis, (count, SHORT)), axis + 1)
    before = (slice(None),) * axis
    ends = _cumsum_along(runs[(*before, slice(count - 1), -1)], axis)
    first, others = runs[(*before, slice(1))], runs[(*before, slice(1, None))]
    result = mx.concatenate([first, others + mx.expand_dims(ends, axis + 1)], axis)
    return mx.flatten(result, axis, axis + 1)[(*before, slice(n))]


def _cumprod(x: mx.array, axis: int | None, dtype: None) -> mx.array:
    return mx.cumprod(mx.flatten(x), 0) if axis is None else mx.cumprod(x, axis)


def _correlate(x: mx.array, y: mx.array, mode: str) -> mx.array:
    padding = overhang(x.shape, y.shape, mode)
    if x.shape[0] < y.shape[0]:
        return mx.conj(_correlate(y, x, mode))[::-1]
    x, y = mx.pad(x, padding), mx.conj(y)
    count = x.shape[0] - y.shape[0] + 1
    if is_vectorizing():  # MLX 0.32: no vmap of the others
        windows = mappable(mx.take(x, mx.arange(count)[:, None] + mx.arange(y.shape[0])))
        return sum_along(windows * y, -1).astype(x.dtype)
    if x.dtype == mx.float32:
        return mx.conv1d(x[None, :, None], y[None, :, None]).reshape(-1)
    # MLX 0.32: no convolution of integers
    windows = mx.as_strided(x, (count, y.shape[0]), (1, 1))
    return sum_along(windows * y, -1).astype(x.dtype)


def _half_correlate(x: mx.array, y: mx.array, mode: str) -> mx.array:
    return _correlate(x.astype(mx.float32), y.astype(mx.float32), mode).astype(x.dtype)


cumsum = accumulating(_cumsum)
cumprod = accumulating(_cumprod)
correlate = ByDType(_correlate, dict.fromkeys(dt.HALVES, _half_correlate))
