"""Reading and replacing parts of tensors, on NumPy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ember_ml.backend import value_checks as checks
from ember_ml.backend.common.indexing import broadcast_along, coordinates, flat_positions, spans


def _is_mask(item: np.ndarray) -> bool:
    return item.dtype == np.bool_


def _is_whole_mask(item: Any, x: np.ndarray) -> bool:
    return isinstance(item, np.ndarray) and _is_mask(item) and item.ndim == x.ndim


def in_range(index: np.ndarray, size: int) -> np.ndarray:
    """Return ``index`` with values from ``-size`` to ``size - 1``; NumPy raises for others if values are checked."""
    if checks.enabled:
        return index
    if size == 0 and index.size:
        raise IndexError("there is nothing to index along a dimension of size 0")
    return np.clip(index.astype(np.int64), -size, max(size - 1, 0))


def _clamp_key(key: tuple[Any, ...], shape: tuple[int, ...]) -> tuple[Any, ...]:
    """Clamp the values of the key's index tensors."""
    return tuple(
        in_range(item, shape[axis]) if isinstance(item, np.ndarray) and not _is_mask(item) else item
        for item, axis, _ in spans(key, len(shape), _is_mask)
    )


def get_item(x: np.ndarray, key: tuple[Any, ...]) -> Any:
    mask = key[0] if len(key) == 1 else None
    if isinstance(mask, np.ndarray) and _is_mask(mask) and mask.ndim and mask.shape == x.shape[: mask.ndim]:
        # finding and taking the indices of a mask is six times as fast as x[mask]
        return x.reshape(mask.size, *x.shape[mask.ndim :]).take(np.flatnonzero(mask), axis=0)
    return x[key if checks.enabled else _clamp_key(key, x.shape)]


def index_update(x: np.ndarray, key: tuple[Any, ...], values: np.ndarray) -> np.ndarray:
    while values.ndim and len(values) == 1:  # NumPy 2.4: refuses leading ones for single elements and masks
        values = values[0]
    if values.ndim > 1 and len(key) == 1 and _is_whole_mask(key[0], x):
        raise ValueError(f"values of shape {values.shape} do not broadcast to the elements that a mask selects")
    result = x.copy()
    result[key if checks.enabled else _clamp_key(key, x.shape)] = values
    return result


def take(x: np.ndarray, indices: np.ndarray, axis: int | None) -> Any:
    length = x.size if axis is None else x.shape[axis]  # NumPy 2.4: takes axis 0 of a number, which has no axes
    return np.take(x, indices if checks.enabled else in_range(indices, length), axis=axis)


def take_along_axis(x: np.ndarray, indices: np.ndarray, axis: int) -> np.ndarray:
    wide_x, wide_indices = broadcast_along(x.shape, indices.shape, axis)
    indices = np.broadcast_to(in_range(indices, x.shape[axis]), wide_indices)
    return np.take_along_axis(np.broadcast_to(x, wide_x), indices, axis)


def put_along_axis(x: np.ndarray, indices: np.ndarray, values: np.ndarray, axis: int) -> np.ndarray:
    broadcast_along(x.shape, indices.shape, axis)
    result = x.copy()
    np.put_along_axis(result, in_range(indices, x.shape[axis]), values, axis)
    return result


def nonzero(x: np.ndarray) -> tuple[np.ndarray, ...]:
    if x.ndim == 0:
        raise ValueError("nonzero needs at least one dimension")
    return np.nonzero(x)


def argwhere(x: np.ndarray) -> np.ndarray:
    return np.stack(nonzero(x), axis=1)


def unravel_index(indices: np.ndarray, shape: Sequence[int]) -> tuple[np.ndarray, ...]:
    return coordinates(_not_negative(indices, math.prod(shape)), shape)


def ravel_multi_index(multi_index: Sequence[np.ndarray], dims: Sequence[int]) -> np.ndarray:
    parts = [_not_negative(index, size) for index, size in zip(multi_index, dims, strict=True)]
    return flat_positions(parts, dims)


def _not_negative(index: np.ndarray, size: int) -> np.ndarray:
    """Return ``index`` as int64 with values from 0 to ``size - 1``."""
    index = index.astype(np.int64)
    if index.size and not checks.enabled:
        return np.clip(index, 0, max(size - 1, 0))
    if index.size and (index.min() < 0 or index.max() >= size):
        raise IndexError(
            f"index {index.min() if index.min() < 0 else index.max()} is out of bounds for {size} elements"
        )
    return index
