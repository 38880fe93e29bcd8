"""Reading and replacing parts of tensors, on MLX."""

from __future__ import annotations

from typing import Any

import mlx.core as mx
import numpy as np

from ember_ml.backend import checks
from ember_ml.backend.keys import Plan, broadcast_indices, plan, shape_of_values


def _is_mask(item: mx.array) -> bool:
    return item.dtype == mx.bool_


def readable(x: mx.array) -> np.ndarray | None:
    """The values of ``x`` as a NumPy view, or None while they are traced and cannot be read."""
    try:
        mx.eval(x)
    except ValueError:
        return None
    return np.array(x, copy=False)


def in_range(index: mx.array, size: int) -> mx.array:
    """``index`` with values from 0 to ``size - 1``: checked in eager code, clamped elsewhere.

    MLX itself reads foreign memory for an index that is out of range.
    """
    if index.size == 0:
        return index.astype(mx.int64)
    if size == 0:
        raise IndexError("there is nothing to index along a dimension of size 0")
    values = readable(index) if checks.enabled else None
    if values is not None:
        low, high = int(values.min()), int(values.max())
        if low < -size or high >= size:
            worst = low if low < -size else high
            raise IndexError(f"index {worst} is out of bounds for a dimension of size {size}")
        if low >= 0:
            return index
        index = index.astype(mx.int64)  # a narrow dtype may not hold the size
        return mx.where(index < 0, index + size, index)
    index = mx.clip(index.astype(mx.int64), -size, size - 1)
    return mx.where(index < 0, index + size, index)


def places(mask: mx.array) -> np.ndarray:
    """The flat positions at which the mask is true; the shape of what it selects depends on its values."""
    values = readable(mask)
    if values is None:
        raise ValueError("a mask that is traced selects an unknown number of elements; use ops.where instead")
    return np.flatnonzero(values)


def _from_places(found: np.ndarray) -> mx.array:
    return mx.array(found, dtype=mx.int64)


def _advanced(y: mx.array, how: Plan) -> tuple[mx.array, list[int], list[mx.array]]:
    """The tensor, its indexed dimensions and the index tensor of each; the dimensions of one mask become one."""
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
        result, front = mx.take(y, indices[0], axis=axes[0]), axes[0]
    else:
        others = [axis for axis in range(y.ndim) if axis not in axes]
        result, front = y.transpose(*axes, *others)[tuple(indices)], 0
    if front == how.position or not shape:
        return result
    order = [axis for axis in range(result.ndim) if not front <= axis < front + len(shape)]
    order[how.position : how.position] = range(front, front + len(shape))
    return result.transpose(*order)


def index_update(x: mx.array, key: tuple[Any, ...], values: mx.array) -> mx.array:
    how = plan(key, x.shape, _is_mask)
    if how.advanced:
        return _update_by_number(x, key, values)
    target = x[how.basic].shape
    values = mx.broadcast_to(values.reshape(shape_of_values(values.shape, target)), target)
    result = mx.array(x)
    result[how.basic] = values
    return result


def _update_by_number(x: mx.array, key: tuple[Any, ...], values: mx.array) -> mx.array:
    """Any update at all: the elements are numbered, the key selects numbers, and those elements are replaced."""
    numbers = get_item(mx.arange(x.size).reshape(x.shape), key)
    values = mx.broadcast_to(values.reshape(shape_of_values(values.shape, numbers.shape)), numbers.shape)
    if numbers.size == 0:
        return mx.array(x)
    result = mx.flatten(x)
    result[numbers] = values
    return result.reshape(x.shape)
