"""Scatter: reduce rows into segments, on JAX."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from ember_ml.backend.common.axes import axis_of
from ember_ml.backend.common.scatter import partial_sums, usable_ids
from ember_ml.backend.common.shapes import as_shape
from ember_ml.backend.contract import Body
from ember_ml.backend.jax.bodies.indexing import readable
from ember_ml.backend.jax.half_precision import widen
from ember_ml.backend.jax.jitting import static


def _check_ids(data: jax.Array, ids: jax.Array, count: int | None) -> tuple[jax.Array, int]:
    """Return the segment ids, all in range, and the number of segments."""
    # JAX 0.10: drops rows whose id is out of range, and ends the process at a shape that overflows
    ids, count = usable_ids(data, ids, count, readable, lambda ids, last: jnp.clip(ids.astype(jnp.int64), 0, last))
    as_shape((count, *data.shape[1:]))
    return ids, count


def _with_checked_ids(reduce: Any) -> Body:
    def body(data: jax.Array, segment_ids: jax.Array, num_segments: int | None, sorted: bool) -> jax.Array:
        ids, count = _check_ids(data, segment_ids, num_segments)
        return reduce(data, ids, count)

    return body


@static(2)
def _sum(data: jax.Array, ids: jax.Array, count: int) -> jax.Array:
    shape = (count, *data.shape[1:])
    wide = widen(data)
    parts = partial_sums(ids.size, count) if wide.dtype.kind in "fc" else 1
    if parts > 1:
        step = -(-ids.size // parts)
        ids = ids.astype(jnp.int64) + jnp.arange(ids.size) // step * count
    sums = jnp.zeros((parts * count, *data.shape[1:]), wide.dtype).at[ids].add(wide)
    return (sums.reshape(parts, *shape).sum(axis=0) if parts > 1 else sums).astype(data.dtype)


@static(2)
def _mean(data: jax.Array, ids: jax.Array, count: int) -> jax.Array:
    wide = widen(data)
    sizes = jnp.maximum(_sizes(ids, count, data.ndim), 1)
    return (_sum(wide, ids, count) / sizes.astype(wide.dtype)).astype(data.dtype)


def _sizes(ids: jax.Array, count: int, ndim: int) -> jax.Array:
    """Return how many rows each segment has, shaped to broadcast with its rows."""
    return jnp.zeros((count,), jnp.int64).at[ids].add(1).reshape(count, *(1,) * (ndim - 1))


def _reducing(name: str) -> Body:
    @static(2)
    def reduce(data: jax.Array, ids: jax.Array, count: int) -> jax.Array:
        wide = widen(data)
        cell = jnp.full((count, *data.shape[1:]), _start(name, wide), wide.dtype).at[ids]
        found = getattr(cell, name)(wide)
        return jnp.where(_sizes(ids, count, data.ndim) == 0, 0, found).astype(data.dtype)

    return _with_checked_ids(reduce)


def _start(name: str, x: jax.Array) -> Any:
    """Return the identity of the reduction."""
    if name == "multiply":
        return 1
    if x.dtype.kind == "f":
        return -jnp.inf if name == "max" else jnp.inf
    if x.dtype.kind == "b":
        return name == "min"
    return jnp.iinfo(x.dtype).min if name == "max" else jnp.iinfo(x.dtype).max


segment_sum = _with_checked_ids(_sum)
segment_mean = _with_checked_ids(_mean)
segment_max = _reducing("max")
segment_min = _reducing("min")
segment_prod = _reducing("multiply")


@static(1, 2, 3)
def one_hot(x: jax.Array, num_classes: int, axis: int, dtype: Any) -> jax.Array:
    as_shape((*x.shape, num_classes))
    found = jnp.moveaxis(x[..., None] == jnp.arange(num_classes), -1, axis_of(axis, x.ndim + 1))
    return found.astype(jnp.float32 if dtype is None else dtype)
