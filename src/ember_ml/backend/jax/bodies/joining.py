"""Joining, splitting, repeating and padding, on JAX."""

from __future__ import annotations

import operator
from typing import Any

import jax
import jax.numpy as jnp

from ember_ml.backend.common.axes import axis_of
from ember_ml.backend.common.padding import margins, pad_indices, repeat_indices
from ember_ml.backend.common.shapes import as_shape, pad_pairs, sections
from ember_ml.backend.jax.jitting import static

_concatenate = static(1)(jnp.concatenate)
_stack = static(1)(jnp.stack)
_tile = static(1)(jnp.tile)
_repeat = static(1, 2)(jnp.repeat)


def concatenate(x: list[jax.Array], axis: int | None) -> jax.Array:
    return _concatenate(tuple(x), axis)


def stack(x: list[jax.Array], axis: int) -> jax.Array:
    return _stack(tuple(x), axis)


@static(1)
def unstack(x: jax.Array, axis: int) -> tuple[jax.Array, ...]:
    axis = axis_of(axis, x.ndim)  # slices, since what jnp.unstack moves first is moved back in the gradient
    return tuple(jax.lax.index_in_dim(x, place, axis, keepdims=False) for place in range(x.shape[axis]))


def split(x: jax.Array, indices_or_sections: Any, axis: int) -> list[jax.Array]:
    return _parts(x, indices_or_sections, axis, True)


def array_split(x: jax.Array, indices_or_sections: Any, axis: int) -> list[jax.Array]:
    return _parts(x, indices_or_sections, axis, False)


def _parts(x: jax.Array, parts: Any, axis: int, equal: bool) -> list[jax.Array]:
    axis = axis_of(axis, x.ndim)
    return _slices(x, tuple((part.start, part.stop) for part in sections(parts, x.shape[axis], equal)), axis)


@static(1, 2)
def _slices(x: jax.Array, ends: tuple[tuple[int, int], ...], axis: int) -> list[jax.Array]:
    front = (slice(None),) * axis
    return [x[(*front, slice(start, stop))] for start, stop in ends]


def tile(x: jax.Array, reps: Any) -> jax.Array:
    return _tile(x, as_shape(reps))


def repeat(x: jax.Array, repeats: Any, axis: int | None) -> jax.Array:
    if axis is None:
        x, axis = x.reshape(-1), 0
    axis = axis_of(axis, x.ndim)
    if type(repeats) is int and repeats >= 0:
        return _repeat(x, repeats, axis)
    return jnp.take(x, repeat_indices(x.shape[axis], repeats), axis)


def pad(x: jax.Array, pad_width: Any, mode: str, constant_values: jax.Array | None) -> jax.Array:
    pairs = tuple(pad_pairs(pad_width, x.ndim))
    if not pairs:  # JAX 0.10: refuses them
        return x
    if mode == "constant":
        return _pad(x, pairs, constant_values)
    for axis, (before, after) in enumerate(pairs):
        margins(x.shape[axis], operator.index(before), operator.index(after), mode)  # which checks the mode
    return _extend(x, pairs, mode)


@static(1)
def _pad(x: jax.Array, pairs: tuple[tuple[int, int], ...], value: jax.Array | None) -> jax.Array:
    return jnp.pad(x, pairs, constant_values=0 if value is None else value)


@static(1, 2)
def _extend(x: jax.Array, pairs: tuple[tuple[int, int], ...], mode: str) -> jax.Array:
    for axis, (before, after) in enumerate(pairs):
        if before or after:
            x = jnp.take(x, pad_indices(x.shape[axis], before, after, mode), axis)
    return x
