"""Sorting and order statistics, on JAX. Its sort is stable, with NaN last."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ember_ml.backend.common.axes import axes_of, axis_of, fold_axes, reduced_shape
from ember_ml.backend.common.quantiles import positions, read_probabilities
from ember_ml.backend.jax.half_precision import widen
from ember_ml.backend.jax.jitting import hashable, static


@static(1, 2, 3)
def sort(x: jax.Array, axis: int | None, descending: bool, stable: bool) -> jax.Array:
    if axis is None:
        x, axis = x.reshape(-1), 0
    axis = axis_of(axis, x.ndim or 1)
    result = jnp.sort(x, axis) if x.ndim else x
    return jnp.flip(result, axis) if descending and x.ndim else result


@static(1, 2, 3)
def argsort(x: jax.Array, axis: int | None, descending: bool, stable: bool) -> jax.Array:
    x = jax.lax.stop_gradient(x)
    if axis is None:
        x, axis = x.reshape(-1), 0
    axis = axis_of(axis, x.ndim or 1)
    if not x.ndim:
        return jnp.zeros((), jnp.int64)
    if descending:  # flip, sort ascending, flip: equal elements keep their order
        found = jnp.flip(jnp.argsort(jnp.flip(x, axis), axis), axis).astype(jnp.int64)
        return x.shape[axis] - 1 - found
    return jnp.argsort(x, axis).astype(jnp.int64)


def argpartition(x: jax.Array, kth: int, axis: int) -> jax.Array:
    axis = axis_of(axis, x.ndim)
    axis_of(kth, x.shape[axis])  # which checks it
    return argsort(x, axis, False, True)


@static(1, 2, 3)
def top_k(x: jax.Array, k: int, axis: int, sorted: bool) -> tuple[jax.Array, jax.Array]:
    axis = axis_of(axis, x.ndim)
    n = x.shape[axis]
    if not 0 <= k <= n:
        raise ValueError(f"there are {n} elements along axis {axis}, of which {k} cannot be taken")
    indices = jax.lax.slice_in_dim(argsort(x, axis, True, True), 0, k, axis=axis)
    return jnp.take_along_axis(x, indices, axis), indices


def quantile(x: jax.Array, q: Any, axis: Any, keepdims: bool, method: str) -> jax.Array:
    outer, probabilities = read_probabilities(q)
    return _quantile(x, outer, tuple(probabilities), hashable(axis), bool(keepdims), method)


@static(1, 2, 3, 4, 5)
def _quantile(
    x: jax.Array, outer: tuple[int, ...], probabilities: tuple[float, ...], axis: Any, keepdims: bool, method: str
) -> jax.Array:
    axes = axes_of(axis, x.ndim)
    order, together = fold_axes(x.shape, axes)
    shape = (*outer, *reduced_shape(x.shape, axes, keepdims))
    if not together[-1]:
        return jnp.full(shape, jnp.nan, x.dtype)
    below, above, weight = positions(together[-1], list(probabilities), method)
    part = jnp.sort(widen(x).transpose(order).reshape(together), -1)
    low, high = part[..., np.array(below, int)], part[..., np.array(above, int)]
    weights = np.array(weight, part.dtype)
    between = low * (1 - weights) + high * weights
    result = jnp.where(low == high, low, between)  # the mean of equal infinities is NaN
    result = jnp.where(jnp.isnan(part[..., -1:]), part[..., -1:], result)
    return jnp.moveaxis(result, -1, 0).reshape(shape).astype(x.dtype)


def median(x: jax.Array, axis: Any, keepdims: bool) -> jax.Array:
    return _quantile(x, (), (0.5,), hashable(axis), bool(keepdims), "linear")
