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


def max_pool(
    x: jax.Array,
    pool_size: int | Sequence[int],
    strides: int | Sequence[int] | None,
    padding: Any,
    data_format: str,
) -> jax.Array:
    plan = pooling(x.shape, pool_size, strides, padding, data_format)
    return _max_pool(x, plan, is_channels_first(data_format, x.ndim))


@static(1, 2)
def _max_pool(x: jax.Array, plan: Sliding, first: bool) -> jax.Array:
    lowest = -math.inf if jnp.issubdtype(x.dtype, jnp.floating) else jnp.iinfo(x.dtype).min
    return _reduce(x, np.array(lowest, x.dtype), lax.max, plan, first)


def average_pool(
    x: jax.Array,
    pool_size: int | Sequence[int],
    strides: int | Sequence[int] | None,
    padding: Any,
    data_format: str,
) -> jax.Array:
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
        lengths, steps = [1] * x.ndim, [1] * x.ndim
        pairs = [(0, 0)] * x.ndim
        lengths[axis], steps[axis], pairs[axis] = window, stride, pair
        x = lax.reduce_window(x, start, combine, lengths, steps, pairs)
    return x
