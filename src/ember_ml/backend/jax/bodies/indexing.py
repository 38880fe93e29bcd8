"""Reading and replacing parts of tensors, on JAX."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import Tracer

from ember_ml.backend import value_checks as checks
from ember_ml.backend.common.indexing import (
    Plan,
    broadcast_along,
    broadcast_indices,
    coordinates,
    flat_positions,
    plan,
    shape_of_values,
    split_basic,
)
from ember_ml.backend.jax.bodies.float_bits import is_true
from ember_ml.backend.jax.host_transfer import ArrayImpl, known, like, to_host
from ember_ml.backend.jax.jitting import jitted, static

_is_true = jitted(is_true)
_largest = np.maximum.reduce  # the method max is a function in Python around it
_FEW = 256
"""Of so many indices the list in Python is faster than NumPy's functions."""
_last: tuple[Any, int, int] = (None, 0, 0)
"""The last few indices that were read, which cannot change, with the least and the greatest of them."""


def _is_mask(item: jax.Array) -> bool:
    return item.dtype == bool


def readable(x: jax.Array) -> np.ndarray | None:
    """Return the values of ``x`` as a NumPy view, or None while they are traced and cannot be read."""
    x = known(x)
    return to_host(x) if type(x) is ArrayImpl else None


def in_range(index: jax.Array, size: int, wraps: bool = True) -> jax.Array:
    """Return ``index`` with values from 0 to ``size - 1``: checked in eager code, clamped elsewhere.

    Negative values count from the end, unless ``wraps`` is false.
    """
    # JAX 0.10: reads NaN or the last element for an index that is out of range
    if not checks.enabled:
        return _clamp(index, size, wraps)
    last, low, high = _last
    if last is not index:
        values = readable(index)
        if values is None or not values.size:
            return _clamp(index, size, wraps)
        low, high = _bounds(index, values)
    if low < (-size if wraps else 0) or high >= size:
        raise IndexError(f"index {low if low < 0 else high} is out of bounds for a dimension of size {size}")
    return index if low >= 0 else _clamp(index, size, wraps)


def _bounds(index: jax.Array, values: np.ndarray) -> tuple[int, int]:
    """Return the least and the greatest of the values of ``index``."""
    global _last
    if values.size > _FEW:
        unsigned = values.view(f"u{values.itemsize}")
        high = int(_largest(unsigned, None))  # negative ones are larger there
        is_plain = values.dtype == unsigned.dtype or high < 1 << 8 * values.itemsize - 1
        return (0, high) if is_plain else (int(values.min()), int(values.max()))
    found = values.ravel().tolist()
    _last = index, min(found), max(found)
    return _last[1:]


@static(1, 2)
def _clamp(index: jax.Array, size: int, wraps: bool) -> jax.Array:
    if not index.size:
        return index.astype(jnp.int64)
    if size == 0:
        raise IndexError("there is nothing to index along a dimension of size 0")
    index = jnp.minimum(index, size - 1).astype(jnp.int64) if index.dtype.kind == "u" else index.astype(jnp.int64)
    index = jnp.clip(index, -size if wraps else 0, size - 1)
    return jnp.where(index < 0, index + size, index)


def _places(mask: jax.Array) -> np.ndarray:
    """Return the flat indices at which the mask is true; their number depends on its values."""
    values = readable(mask)
    if values is None:
        raise ValueError("a mask that is traced selects an unknown number of elements; use ops.where instead")
    return np.flatnonzero(values)


@static(2)
def _read(x: jax.Array, starts: np.ndarray, form: tuple[Any, ...]) -> jax.Array:
    spans = [1 if item == 0 else item[2] for item in form if item is not None]
    window = lax.dynamic_slice(x, [starts[axis] for axis in range(x.ndim)], spans) if spans else x
    key = [None if item is None else 0 if item == 0 else slice(None, None, item[1]) for item in form]
    return window[tuple(key)]


def _get_basic(x: jax.Array, basic: tuple[Any, ...]) -> jax.Array:
    if isinstance(x, Tracer):
        return x[basic]  # part of a larger program, for which constants are better
    form, starts = split_basic(basic, x.shape)
    return _read(x, np.array(starts, np.int32 if max(x.shape, default=0) < 2**31 else np.int64), form)


def _advanced(y: jax.Array, how: Plan) -> tuple[jax.Array, list[int], list[jax.Array]]:
    """Return the tensor, its indexed dimensions and the index tensor of each; a mask's dimensions become one."""
    if len(how.advanced) == 1 and _is_mask(how.advanced[0][1]):
        axis, mask = how.advanced[0]
        end = axis + max(mask.ndim, 1)
        y = y.reshape(*y.shape[:axis], mask.size, *y.shape[end:])
        return y, [axis], [like(mask, _places(mask))]
    axes: list[int] = []
    indices: list[jax.Array] = []
    for axis, item in how.advanced:
        if _is_mask(item):
            found = np.unravel_index(_places(item), item.shape or (1,))
            axes.extend(range(axis, axis + len(found)))
            indices.extend(like(item, part) for part in found)
        else:
            axes.append(axis)
            indices.append(in_range(item, y.shape[axis]))
    return y, axes, indices


def get_item(x: jax.Array, key: tuple[Any, ...]) -> jax.Array:
    how = plan(key, x.shape, _is_mask)
    y = x if how.is_whole and how.advanced else _get_basic(x, how.basic)
    if not how.advanced:
        return y
    y, axes, indices = _advanced(y, how)
    broadcast_indices([index.shape for index in indices])
    return _gather(y, tuple(indices), tuple(axes), how.position)


@static(2, 3)
def _gather(y: jax.Array, indices: tuple[jax.Array, ...], axes: tuple[int, ...], position: int) -> jax.Array:
    """Read by several index arrays; the dimensions to which they broadcast go to ``position``."""
    count = len(jnp.broadcast_shapes(*(index.shape for index in indices)))
    others = [axis for axis in range(y.ndim) if axis not in axes]
    result = y.transpose(*axes, *others).at[indices].get(mode="promise_in_bounds")
    order = list(range(count, result.ndim))
    order[position:position] = range(count)
    return result.transpose(order)


def index_update(x: jax.Array, key: tuple[Any, ...], values: jax.Array) -> jax.Array:
    how = plan(key, x.shape, _is_mask)
    if not how.advanced:
        form, starts = split_basic(how.basic, x.shape)
        target = tuple(1 if item is None else item[0] for item in form if item != 0)
        shape_of_values(values.shape, target)
        return _write(x, np.array(starts, np.int64), values, form)
    if len(how.advanced) == 1 and how.is_whole and _is_mask(how.advanced[0][1]) and values.size == 1:
        axis, mask = how.advanced[0]
        return _fill(x, mask, values, axis) if values.ndim <= 1 else _update_by_number(x, key, values)
    return _update_by_number(x, key, values)


@static(3)
def _write(x: jax.Array, starts: jax.Array, values: jax.Array, form: tuple[Any, ...]) -> jax.Array:
    """Replace a window of ``x``, of which a part may be kept."""
    spans = [1 if item == 0 else item[2] for item in form if item is not None]
    if not spans:
        return jnp.broadcast_to(values.reshape(()), ())
    if 0 in spans:
        return x
    places = [starts[axis] for axis in range(x.ndim)]
    window = lax.dynamic_slice(x, places, spans)
    key = tuple(None if item is None else 0 if item == 0 else slice(None, None, item[1]) for item in form)
    target = jax.eval_shape(lambda part: part[key], window).shape
    values = jnp.broadcast_to(values.reshape(shape_of_values(values.shape, target)), target)
    new_axes = tuple(axis for axis, item in enumerate(item for item in form if item != 0) if item is None)
    whole = tuple(item for item in key if item is not None)
    return lax.dynamic_update_slice(x, window.at[whole].set(jnp.squeeze(values, new_axes)), places)


@static(3)
def _fill(x: jax.Array, mask: jax.Array, values: jax.Array, axis: int) -> jax.Array:
    mask = mask.reshape(*mask.shape, *(1,) * (x.ndim - axis - mask.ndim))
    return jnp.where(mask, values.reshape(()), x)


def _update_by_number(x: jax.Array, key: tuple[Any, ...], values: jax.Array) -> jax.Array:
    """Update by any key: number the elements, apply the key to the numbers, replace the elements with these numbers."""
    numbers = get_item(like(x, np.arange(x.size).reshape(x.shape)), key)
    shape_of_values(values.shape, numbers.shape)
    return _replace(x, numbers, values)


@jitted
def _replace(x: jax.Array, numbers: jax.Array, values: jax.Array) -> jax.Array:
    if numbers.size == 0:
        return x
    shape = numbers.shape
    values = jnp.broadcast_to(values.reshape(shape_of_values(values.shape, shape)), shape)
    # XLA promises no order of updates: of several for one element the last one wins here
    flat, order = numbers.reshape(-1), jnp.arange(numbers.size)
    last = jnp.full(x.size, -1).at[flat].max(order)
    chosen = values.reshape(-1)[jnp.maximum(last, 0)]
    return jnp.where(last >= 0, chosen, x.reshape(-1)).reshape(x.shape)


def take(x: jax.Array, indices: jax.Array, axis: int | None) -> jax.Array:
    if axis is None:
        x, axis = x.reshape(-1), 0
    return _take(x, in_range(indices, x.shape[axis]), axis)


@static(2)
def _take(x: jax.Array, indices: jax.Array, axis: int) -> jax.Array:
    if not indices.size:  # JAX 0.10: forgets the other axes of the indices where there is nothing to take from
        return jnp.zeros((*x.shape[:axis], *indices.shape, *x.shape[axis % x.ndim + 1 :]), dtype=x.dtype)
    return jnp.take(x, indices, axis, mode="clip")


def take_along_axis(x: jax.Array, indices: jax.Array, axis: int) -> jax.Array:
    is_new = indices is not _last[0] and type(indices) is ArrayImpl
    # while a program runs, the many indices are checked
    found = _take_along(x, indices, axis) if is_new and indices.size > _FEW and x.size else None
    within = in_range(indices, x.shape[axis])
    return found if found is not None and within is indices else _take_along(x, within, axis)


@static(2)
def _take_along(x: jax.Array, indices: jax.Array, axis: int) -> jax.Array:
    wide_x, wide_indices = broadcast_along(x.shape, indices.shape, axis)
    indices = jnp.broadcast_to(indices, wide_indices)
    return jnp.take_along_axis(jnp.broadcast_to(x, wide_x), indices, axis, mode="promise_in_bounds")


def put_along_axis(x: jax.Array, indices: jax.Array, values: jax.Array, axis: int) -> jax.Array:
    wide_x, wide_indices = broadcast_along(x.shape, indices.shape, axis)
    if wide_x != tuple(x.shape):
        raise ValueError(f"indices of shape {tuple(indices.shape)} name more places than {tuple(x.shape)} has")
    shape_of_values(values.shape, wide_indices)
    return _put_along(x, in_range(indices, x.shape[axis]), values, axis % x.ndim, wide_indices)


@static(3, 4)
def _put_along(
    x: jax.Array, indices: jax.Array, values: jax.Array, axis: int, wide_indices: tuple[int, ...]
) -> jax.Array:
    if not math.prod(wide_indices):
        return x
    numbers = jnp.arange(x.size).reshape(x.shape)
    places = jnp.take_along_axis(numbers, jnp.broadcast_to(indices, wide_indices), axis, mode="clip")
    return _replace(x, places, values)


def nonzero(x: jax.Array) -> tuple[jax.Array, ...]:
    if x.ndim == 0:
        raise ValueError("nonzero needs at least one dimension")
    return tuple(like(x, part) for part in np.unravel_index(_places(x if _is_mask(x) else _is_true(x)), x.shape))


def argwhere(x: jax.Array) -> jax.Array:
    return jnp.stack(nonzero(x), axis=1)


def unravel_index(indices: jax.Array, shape: Sequence[int]) -> tuple[jax.Array, ...]:
    return coordinates(in_range(indices, math.prod(shape), wraps=False).astype(jnp.int64), shape)


def ravel_multi_index(multi_index: Sequence[jax.Array], dims: Sequence[int]) -> jax.Array:
    parts = [in_range(index, size, wraps=False) for index, size in zip(multi_index, dims, strict=True)]
    return flat_positions([part.astype(jnp.int64) for part in parts], dims)
