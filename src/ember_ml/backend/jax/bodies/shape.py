"""Reshape, reorder and broadcast, on JAX."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from ember_ml.backend.common.axes import axis_of
from ember_ml.backend.common.shapes import as_axes, as_shape, broadcast, new_shape, roll_pairs
from ember_ml.backend.jax.jitting import hashable, static

_reshape = static(1)(jnp.reshape)
_transpose = static(1)(jnp.transpose)
_expand_dims = static(1)(jnp.expand_dims)
_squeeze = static(1)(jnp.squeeze)
_broadcast_to = static(1)(jnp.broadcast_to)
_flip = static(1)(jnp.flip)


def reshape(x: jax.Array, shape: Any) -> jax.Array:
    return _reshape(x, new_shape(shape))


def transpose(x: jax.Array, axes: Any) -> jax.Array:
    return _transpose(x, None if axes is None else as_axes(axes, x.ndim))


def swapaxes(x: jax.Array, axis1: int, axis2: int) -> jax.Array:
    order = list(range(x.ndim))
    first, second = axis_of(axis1, x.ndim), axis_of(axis2, x.ndim)
    order[first], order[second] = second, first
    return _transpose(x, tuple(order))


def expand_dims(x: jax.Array, axis: Any) -> jax.Array:
    count = len(axis) if isinstance(axis, tuple | list) else 1
    return _expand_dims(x, as_axes(axis, x.ndim + count))


def squeeze(x: jax.Array, axis: Any) -> jax.Array:
    return _squeeze(x, None if axis is None else as_axes(axis, x.ndim))


def broadcast_to(x: jax.Array, shape: Any) -> jax.Array:
    return _broadcast_to(x, as_shape(shape))


def broadcast_arrays(arrays: list[jax.Array]) -> tuple[jax.Array, ...]:
    shape = broadcast([x.shape for x in arrays])
    return tuple(_broadcast_to(x, shape) for x in arrays)


def flip(x: jax.Array, axis: Any) -> jax.Array:
    return _flip(x, None if axis is None else as_axes(axis, x.ndim))


def roll(x: jax.Array, shift: Any, axis: Any) -> jax.Array:
    if type(shift) is not int:
        shift = roll_pairs(shift, 0, 1)[0]
    return _roll(x, shift, hashable(axis))


@static(1, 2)
def _roll(x: jax.Array, shift: Any, axis: Any) -> jax.Array:
    if not x.size:
        return x
    if axis is None:
        return jnp.roll(x, sum(roll_pairs(shift, 0, 1)[0]) % x.size)
    shifts, axes = roll_pairs(shift, axis, x.ndim)
    return jnp.roll(x, tuple(by % x.shape[one] for by, one in zip(shifts, axes, strict=True)), axes)
