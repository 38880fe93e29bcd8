"""Reading and replacing parts of tensors, on MLX."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import mlx.core as mx
import numpy as np

from ember_ml.backend import value_checks as checks
from ember_ml.backend.common.indexing import (
    Plan,
    broadcast_along,
    broadcast_indices,
    coordinates,
    flat_positions,
    plan,
    shape_of_values,
)
from ember_ml.backend.mlx.host_transfer import from_host, to_host
from ember_ml.backend.mlx.laziness import is_unchecked
from ember_ml.backend.mlx.vmap_rules import map_over_stacks, mappable


def _is_mask(item: mx.array) -> bool:
    return item.dtype == mx.bool_


def readable(x: mx.array) -> np.ndarray | None:
    """Return the values of ``x`` as a NumPy view, or None while they are traced and cannot be read."""
    try:
        return to_host(x)
    except ValueError:
        return None


_FEW = 256  # up to so many integers, min and max of a list are faster than those of an array


def _extent(index: mx.array) -> tuple[int, int] | None:
    """Return the least and the largest of some integers, or None while they are traced and cannot be read."""
    try:
        if index.ndim == 1 and index.size <= _FEW:
            values: Any = index.tolist()
            return min(values), max(values)
        mx.eval(index)
    except ValueError:
        return None
    array = np.asarray(memoryview(index))  # pyright: ignore[reportArgumentType]  # it is a buffer
    return int(np.minimum.reduce(array, None)), int(np.maximum.reduce(array, None))


def in_range(index: mx.array, size: int, wraps: bool = True) -> mx.array:
    """Return ``index`` with values from 0 to ``size - 1``: checked in eager code, clamped elsewhere.

    Negative values count from the end, unless ``wraps`` is false.
    """
    # MLX 0.32: reads outside of the array for an index that is out of range (mlx#206)
    if index.size == 0:
        return index.astype(mx.int64)
    if size == 0:
        raise IndexError("there is nothing to index along a dimension of size 0")
    least = -size if wraps else 0
    extent = _extent(index) if checks.enabled and not is_unchecked() else None
    index = mx.stop_gradient(index)  # MLX 0.32: refuses to differentiate by an index
    if extent is not None:
        low, high = extent
        if low < least or high >= size:
            raise IndexError(f"index {low if low < least else high} is out of bounds for a dimension of size {size}")
        if low >= 0:
            return index
        index = index.astype(mx.int64)  # a narrow dtype may not hold the size
    else:
        index = mx.clip(index.astype(mx.int64), least, size - 1)
        if not wraps:
            return index
    return mx.where(index < 0, index + size, index)


def places(mask: mx.array) -> np.ndarray:
    """Return the flat indices at which the mask is true; their number depends on its values."""
    values = readable(mask)
    if values is None:
        raise ValueError("a mask that is traced selects an unknown number of elements; use ops.where instead")
    return np.flatnonzero(values)


def _from_places(found: np.ndarray) -> mx.array:
    return from_host(found.astype(np.int64, copy=False), None)


def _advanced(y: mx.array, how: Plan) -> tuple[mx.array, list[int], list[mx.array]]:
    """Return the tensor, its indexed dimensions and the index tensor of each; a mask's dimensions become one."""
    if len(how.advanced) == 1 and _is_mask(how.advanced[0][1]):
        axis, mask = how.advanced[0]
        end = axis + max(mask.ndim, 1)
        y = y.reshape(*y.shape[:axis], mask.size, *y.shape[end:])
        return y, [axis], [_from_places(places(mask))]
    axes: list[int] = []
    indices: list[mx.array] = []
    for axis, item in how.advanced:
        if _is_mask(item):
            found = np.unravel_index(places(item), item.shape or (1,))
            axes.extend(range(axis, axis + len(found)))
            indices.extend(_from_places(part) for part in found)
        else:
            axes.append(axis)
            indices.append(in_range(item, y.shape[axis]))
    return y, axes, indices


def get_item(x: mx.array, key: tuple[Any, ...]) -> mx.array:
    how = plan(key, x.shape, _is_mask)
    y = x if how.is_whole and how.advanced else x[how.basic]
    if not how.advanced:
        return y
    y, axes, indices = _advanced(y, how)
    shape = broadcast_indices([index.shape for index in indices])
    if len(indices) == 1:
        result, front = mappable(mx.take(y, indices[0], axis=axes[0])), axes[0]
    else:
        others = [axis for axis in range(y.ndim) if axis not in axes]
        result, front = mappable(y.transpose(*axes, *others)[tuple(indices)]), 0
    if front == how.position or not shape:
        return result
    order = [axis for axis in range(result.ndim) if not front <= axis < front + len(shape)]
    order[how.position : how.position] = range(front, front + len(shape))
    return result.transpose(*order)


def index_update(x: mx.array, key: tuple[Any, ...], values: mx.array) -> mx.array:
    how = plan(key, x.shape, _is_mask)
    if not how.advanced:
        target = x[how.basic].shape
        values = mx.broadcast_to(values.reshape(shape_of_values(values.shape, target)), target)
        ndim = x.ndim

        # MLX 0.32: changes the first sample only under vmap where the values are not mapped
        @map_over_stacks
        def update(x: mx.array, values: mx.array) -> mx.array:
            result = mx.array(x)
            result[(*(slice(None),) * (x.ndim - ndim), *how.basic)] = values
            return result

        return update(x, values)
    if len(how.advanced) == 1 and how.is_whole and x.size:
        axis, index = how.advanced[0]
        if _is_mask(index) and values.size == 1 and values.ndim <= 1:
            mask = index.reshape(*index.shape, *(1,) * (x.ndim - axis - index.ndim))
            return mx.where(mask, values.reshape(()), x)
        if not _is_mask(index) and index.size:
            target = (*x.shape[:axis], *index.shape, *x.shape[axis + 1 :])
            result = mx.array(x)
            where = (*(slice(None),) * axis, in_range(index, x.shape[axis]))
            result[where] = mx.broadcast_to(values.reshape(shape_of_values(values.shape, target)), target)
            return result
    return _update_by_number(x, key, values)


def _update_by_number(x: mx.array, key: tuple[Any, ...], values: mx.array) -> mx.array:
    """Update by any key: number the elements, apply the key to the numbers, replace the elements with these numbers."""
    numbers = get_item(mx.arange(x.size).reshape(x.shape), key)
    values = mx.broadcast_to(values.reshape(shape_of_values(values.shape, numbers.shape)), numbers.shape)
    if numbers.size == 0:
        return mx.array(x)
    result = mx.flatten(x)
    result[numbers] = values
    return result.reshape(x.shape)


def take(x: mx.array, indices: mx.array, axis: int | None) -> mx.array:
    if axis is None:
        x, axis = x.reshape(-1), 0
    return mappable(mx.take(x, in_range(indices, x.shape[axis]), axis=axis))


def take_along_axis(x: mx.array, indices: mx.array, axis: int) -> mx.array:
    wide_x, wide_indices = broadcast_along(x.shape, indices.shape, axis)
    indices = mx.broadcast_to(in_range(indices, x.shape[axis]), wide_indices)
    return mx.take_along_axis(mx.broadcast_to(x, wide_x), indices, axis)


def put_along_axis(x: mx.array, indices: mx.array, values: mx.array, axis: int) -> mx.array:
    wide_x, wide_indices = broadcast_along(x.shape, indices.shape, axis)
    if wide_x != tuple(x.shape):
        raise ValueError(f"indices of shape {tuple(indices.shape)} name more places than {tuple(x.shape)} has")
    values = mx.broadcast_to(values.reshape(shape_of_values(values.shape, wide_indices)), wide_indices)
    indices = mx.broadcast_to(in_range(indices, x.shape[axis]), wide_indices)
    return mx.put_along_axis(x, indices, values, axis) if indices.size else mx.array(x)


def nonzero(x: mx.array) -> tuple[mx.array, ...]:
    if x.ndim == 0:
        raise ValueError("nonzero needs at least one dimension")
    mask = x if _is_mask(x) else x != 0
    return tuple(_from_places(part) for part in np.unravel_index(places(mask), x.shape))


def argwhere(x: mx.array) -> mx.array:
    return mx.stack(list(nonzero(x)), axis=1)


def unravel_index(indices: mx.array, shape: Sequence[int]) -> tuple[mx.array, ...]:
    return coordinates(in_range(indices, math.prod(shape), wraps=False).astype(mx.int64), shape)


def ravel_multi_index(multi_index: Sequence[mx.array], dims: Sequence[int]) -> mx.array:
    parts = [in_range(index, size, wraps=False) for index, size in zip(multi_index, dims, strict=True)]
    return flat_positions([part.astype(mx.int64) for part in parts], dims)
