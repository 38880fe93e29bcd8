"""Pooling, on JAX, by XLA's reductions of windows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ember_ml.backend.common.convolution import Sliding, is_channels_first, pooling
from ember_ml.backend.jax.half_precision import narrow_as, widen
from ember_ml.backend.jax.jitting import static

Sizes = int | Sequence[int]
_LONG = 64
"""From this length on a window is added in parts."""


def max_pool(x: jax.Array, pool_size: Sizes, strides: Sizes | None, padding: Any, data_format: str) -> jax.Array:
    plan = pooling(x.shape, pool_size, strides, padding, data_format)
    return _max_pool(x, plan, is_channels_first(data_format, x.ndim))


@static(1, 2)
def _max_pool(x: jax.Array, plan: Sliding, first: bool) -> jax.Array:
    lowest = -math.inf if jnp.issubdtype(x.dtype, jnp.floating) else jnp.iinfo(x.dtype).min
    return _reduce(x, np.array(lowest, x.dtype), lax.max, plan, first)


def average_pool(x: jax.Array, pool_size: Sizes, strides: Sizes | None, padding: Any, data_format: str) -> jax.Array:
    plan = pooling(x.shape, pool_size, strides, padding, data_format)
    return _average_pool(x, plan, is_channels_first(data_format, x.ndim))


@static(1, 2)
def _average_pool(x: jax.Array, plan: Sliding, first: bool) -> jax.Array:
    wide = widen(x)
    zero = np.array(0, wide.dtype)
    counts: Any = math.prod(plan.window)
    if plan.is_padded:
        one = jnp.ones_like(wide[:1, :1] if first else wide[:1, ..., :1])
        counts = _reduce(one, zero, lax.add, plan, first)
    return narrow_as(_reduce(wide, zero, lax.add, plan, first) / counts, x)


def _reduce(x: jax.Array, start: Any, combine: Any, plan: Sliding, first: bool) -> jax.Array:
    """Reduce the windows along one dimension after the other, which takes fewer steps than all at once."""
    for axis, (window, stride, pair) in enumerate(zip(plan.window, plan.strides, plan.padding, strict=True), 1 + first):
        if combine is lax.add and window >= _LONG:
            x = _add_in_parts(x, start, axis, window, stride, pair)
        else:
            x = _reduce_axis(x, start, combine, axis, window, stride, pair)
    return x


def _reduce_axis(
    x: jax.Array, start: Any, combine: Any, axis: int, window: int, stride: int, pair: tuple[int, int], apart: int = 1
) -> jax.Array:
    """Reduce the windows along one dimension, whose elements are so far apart."""
    sizes, pairs = np.ones((3, x.ndim), int), [(0, 0)] * x.ndim
    sizes[:, axis], pairs[axis] = (window, stride, apart), pair
    return lax.reduce_window(x, start, combine, sizes[0], sizes[1], pairs, window_dilation=sizes[2])


def _add_in_parts(x: jax.Array, zero: Any, axis: int, window: int, stride: int, pair: tuple[int, int]) -> jax.Array:
    """Add long windows as sums of sums: fewer additions than one after the other, and less rounding."""
    length = math.isqrt(window)
    count, rest = divmod(window, length)
    pads = [(0, 0, 0)] * x.ndim
    pads[axis] = (*pair, 0)
    x = lax.pad(x, zero, pads)
    parts = _reduce_axis(x, zero, lax.add, axis, length, 1, (0, 0))
    parts = lax.slice_in_dim(parts, 0, parts.shape[axis] - rest, axis=axis)
    sums = _reduce_axis(parts, zero, lax.add, axis, count, stride, (0, 0), apart=length)
    if not rest:
        return sums
    ends = lax.slice_in_dim(x, count * length, x.shape[axis], axis=axis)
    return sums + _reduce_axis(ends, zero, lax.add, axis, rest, stride, (0, 0))
