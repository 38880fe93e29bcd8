"""Reading and replacing parts of tensors, on PyTorch."""

from __future__ import annotations

from typing import Any

import torch

from ember_ml.backend import checks
from ember_ml.backend.keys import Plan, broadcast_indices, plan, shape_of_values


def _is_mask(item: torch.Tensor) -> bool:
    return item.dtype is torch.bool


def in_range(index: torch.Tensor, size: int) -> torch.Tensor:
    """``index`` as int64, each value between ``-size`` and ``size - 1``: checked in eager code, clamped elsewhere."""
    index = index.to(torch.int64)
    if size == 0 and index.numel():
        raise IndexError("there is nothing to index along a dimension of size 0")
    if checks.enabled and not torch.compiler.is_compiling():
        if index.numel():
            low, high = torch.aminmax(index)
            if low < -size or high >= size:
                worst = int(low if low < -size else high)
                raise IndexError(f"index {worst} is out of bounds for a dimension of size {size}")
        return index
    return index.clamp(-size, size - 1)


def _checked_by_torch(index: torch.Tensor, size: int) -> torch.Tensor:
    """``in_range`` for reading and writing by ``x[index]``, where torch itself raises on the CPU."""
    if checks.enabled and index.device.type == "cpu" and not torch.compiler.is_compiling():
        return index.to(torch.int64)
    return in_range(index, size)


def _basic(x: torch.Tensor, items: tuple[Any, ...]) -> torch.Tensor:
    """The basic step of a key; torch has no slices that go backwards, so they go forwards and are flipped."""
    forwards, flipped, made = [], [], 0
    for size, item in zip(_sizes(x, items), items, strict=True):
        if type(item) is slice and item.step is not None and item.step < 0:
            start, stop, step = item.indices(size)
            count = len(range(start, stop, step))
            item = slice(start + (count - 1) * step, start + 1, -step)
            flipped.append(made)
        forwards.append(item)
        made += type(item) is not int
    result = x[tuple(forwards)]
    return result.flip(flipped) if flipped else result


def _sizes(x: torch.Tensor, items: tuple[Any, ...]) -> list[int]:
    """The size of the dimension that each basic item stands for."""
    sizes = iter(x.shape)
    return [1 if item is None else next(sizes) for item in items]


def _advanced(y: torch.Tensor, how: Plan) -> tuple[torch.Tensor, tuple[Any, ...], int, bool]:
    """The tensor, the native key, the number of dimensions that its indices give, and whether torch leaves them in place.

    Where torch would put them elsewhere, the indexed dimensions are moved to the front.
    """
    axes: list[int] = []
    indices: list[torch.Tensor] = []
    for axis, item in how.advanced:
        if not _is_mask(item):
            axes.append(axis)
            indices.append(_checked_by_torch(item, y.shape[axis]))
        elif len(how.advanced) == 1:
            axes.extend(range(axis, axis + max(item.ndim, 1)))
            indices.append(item if item.ndim else item.reshape(1))
        else:
            found = torch.atleast_1d(item).nonzero(as_tuple=True)
            axes.extend(range(axis, axis + len(found)))
            indices.extend(found)
    shape = (0,) if _is_mask(indices[0]) else broadcast_indices([index.shape for index in indices])
    if axes == list(range(how.position, how.position + len(axes))):
        return y, (*(slice(None),) * how.position, *indices), len(shape), True
    return y.movedim(axes, list(range(len(axes)))), tuple(indices), len(shape), False


def get_item(x: torch.Tensor, key: tuple[Any, ...]) -> torch.Tensor:
    how = plan(key, x.shape, _is_mask)
    y = x if how.is_whole and how.advanced else _basic(x, how.basic)
    if not how.advanced:
        return y
    y, native_key, width, in_place = _advanced(y, how)
    result = y[native_key]
    if in_place:
        return result
    return result.movedim(list(range(width)), list(range(how.position, how.position + width)))


def index_update(x: torch.Tensor, key: tuple[Any, ...], values: torch.Tensor) -> torch.Tensor:
    how = plan(key, x.shape, _is_mask)
    if how.reverses:
        return _update_by_number(x, key, values)
    result = x.clone()
    target = _basic(result, how.basic)
    if not how.advanced:
        target.copy_(values.reshape(shape_of_values(values.shape, target.shape)))
        return result
    target, native_key, _, in_place = _advanced(target, how)
    if not in_place:
        return _update_by_number(x, key, values)
    target[native_key] = values
    return result


def _update_by_number(x: torch.Tensor, key: tuple[Any, ...], values: torch.Tensor) -> torch.Tensor:
    """Any update at all: the elements are numbered, the key selects numbers, and those elements are replaced."""
    numbers = get_item(torch.arange(x.numel(), device=x.device).reshape(x.shape), key)
    result = x.flatten().clone()
    result[numbers] = values.reshape(shape_of_values(values.shape, numbers.shape))
    return result.reshape(x.shape)
