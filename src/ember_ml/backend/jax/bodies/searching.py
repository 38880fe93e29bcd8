"""Distinct values, positions in sorted data, and counts, on JAX."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from ember_ml.backend.common.unique import descends, unique_ops, unique_parts
from ember_ml.backend.jax.bodies.indexing import in_range, readable
from ember_ml.backend.jax.bodies.scatter import segment_sum
from ember_ml.backend.jax.host_transfer import like
from ember_ml.backend.jax.jitting import static


def _unique(x: jax.Array, index: bool, inverse: bool, counts: bool) -> list[jax.Array]:
    """Let NumPy find the distinct values: the shape of the result depends on them."""
    values = readable(x)
    if values is None:
        raise ValueError("the number of distinct values must be known, but these are traced")
    return [like(x, part) for part in unique_parts(values, index, inverse, counts)]


unique_values, unique_all, unique_counts, unique_inverse = unique_ops(_unique)


def searchsorted(x: jax.Array, y: jax.Array, side: str, sorter: jax.Array | None) -> jax.Array:
    if x.ndim != 1:
        raise ValueError(f"x must have one dimension, not the shape {x.shape}")
    if side not in ("left", "right"):
        raise ValueError(f"side is 'left' or 'right', not {side!r}")
    if sorter is not None:
        x = x[in_range(sorter, x.size)]
    return _searchsorted(x, y, side)


@static(2)
def _searchsorted(x: jax.Array, y: jax.Array, side: str) -> jax.Array:
    return jnp.searchsorted(x, y, side=side).astype(jnp.int64)


def digitize(x: jax.Array, bins: jax.Array, right: bool) -> jax.Array:
    side = "left" if right else "right"
    values = readable(bins)
    if values is not None and descends(values):
        return bins.size - searchsorted(bins[::-1], x, side, None)
    return searchsorted(bins, x, side, None)  # traced: the order of bins cannot be read


def bincount(x: jax.Array, weights: jax.Array | None, minlength: int) -> jax.Array:
    values = readable(x)
    if values is None:
        raise ValueError("the largest integer must be known, but these are traced; ops.segment_sum takes their number")
    if values.ndim != 1:
        raise ValueError(f"x must have one dimension, not the shape {x.shape}")
    if values.size and values.min() < 0:
        raise ValueError("bincount counts no negative integers")
    each = jnp.ones(x.shape, jnp.int64) if weights is None else weights
    return segment_sum(each, x, max(int(values.max()) + 1 if values.size else 0, minlength), False)
