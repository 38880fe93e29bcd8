"""Reading and replacing parts of tensors, on PyTorch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from ember_ml.backend import value_checks as checks
from ember_ml.backend.common.indexing import (
    Plan,
    bounds,
    broadcast_along,
    broadcast_indices,
    coordinates,
    flat_positions,
    plan,
    shape_of_values,
)
from ember_ml.backend.contract import Body, ByDType
from ember_ml.backend.torch.gradients import is_inside_transform
from ember_ml.backend.torch.readable_values import is_mapped
from ember_ml.core import dtypes as dt

_SIGNED = {torch.uint16: torch.int16, torch.uint32: torch.int32, torch.uint64: torch.int64}


def _move_bits(body: Body, *others: int) -> ByDType:
    """Return a body that moves uint16, uint32 and uint64 as signed integers of the same bits.

    ``others`` are the positions of the tensors besides the first that hold such elements.
    """
    # torch 2.13: few functions that move elements take these dtypes (pytorch#58734)

    def through_bits(x: torch.Tensor, *args: Any) -> torch.Tensor:
        moved = [arg.view(_SIGNED[x.dtype]) if number in others else arg for number, arg in enumerate(args, 1)]
        return body(x.view(_SIGNED[x.dtype]), *moved).view(x.dtype)

    return ByDType(body, dict.fromkeys((dt.uint16, dt.uint32, dt.uint64), through_bits))


def _is_mask(item: torch.Tensor) -> bool:
    return item.dtype is torch.bool


def in_range(index: torch.Tensor, size: int, wraps: bool = True) -> torch.Tensor:
    """Return ``index`` as int64 with values from 0 to ``size - 1``: checked in eager code, clamped elsewhere.

    Negative values count from the end, unless ``wraps`` is false.
    """
    index = index.to(torch.int64)
    least = -size if wraps else 0
    if index.numel() == 0:
        return index
    if size == 0:
        raise IndexError("there is nothing to index along a dimension of size 0")
    bounds = _bounds(index) if checks.enabled and not torch.compiler.is_compiling() else None
    if bounds is None:
        index = index.clamp(least, size - 1)
    else:
        low, high = bounds
        if low < least or high >= size:
            raise IndexError(f"index {low if low < least else high} is out of bounds for a dimension of size {size}")
        if low >= 0:
            return index
    return torch.where(index < 0, index + size, index)


def _bounds(index: torch.Tensor) -> tuple[int, int] | None:
    """Return the least and the largest index; None inside vmap, where a tensor stands for many."""
    low, high = torch.aminmax(index)
    try:
        return int(low), int(high)
    except RuntimeError:
        return None


def _is_checked_by_torch(x: torch.Tensor) -> bool:
    """Whether torch itself raises where an index of ``x`` is out of range: in eager code on the CPU."""
    return checks.enabled and x.device.type == "cpu" and not torch.compiler.is_compiling()


def _checked_by_torch(index: torch.Tensor, y: torch.Tensor, axis: int) -> torch.Tensor:
    """Do the same as ``in_range`` for ``y[index]``; on the CPU torch checks and wraps unless nothing is selected."""
    return index.to(torch.int64) if y.numel() and _is_checked_by_torch(index) else in_range(index, y.shape[axis])


def places(mask: torch.Tensor) -> torch.Tensor:
    """Return the flat indices at which the mask is true; on the CPU NumPy finds them ten times as fast."""
    if mask.device.type == "cpu" and not is_inside_transform():
        return torch.from_numpy(np.flatnonzero(mask.numpy()))
    return mask.reshape(-1).nonzero().reshape(-1)


def _basic(x: torch.Tensor, items: tuple[Any, ...]) -> torch.Tensor:
    """Apply the basic items of a key."""
    # torch 2.13: no negative steps (pytorch#59786); such slices run forwards and are flipped
    forwards, flipped, made = [], [], 0
    for size, item in zip(_sizes(x, items), items, strict=True):
        if type(item) is slice and item.step is not None and item.step < 0:
            start, stop, step = bounds(item, size)
            count = len(range(start, stop, step))
            item = slice(start + (count - 1) * step, start + 1, -step)
            flipped.append(made)
        forwards.append(item)
        made += type(item) is not int
    result = x[tuple(forwards)]
    return result.flip(flipped) if flipped else result


def _sizes(x: torch.Tensor, items: tuple[Any, ...]) -> list[int]:
    """Return the size of the dimension that each basic item indexes."""
    sizes = iter(x.shape)
    return [1 if item is None else next(sizes) for item in items]


def _advanced(y: torch.Tensor, how: Plan) -> tuple[torch.Tensor, tuple[Any, ...], int, bool]:
    """Return the tensor, the native key, how many dimensions the indices have, and whether torch leaves them in place.

    Where torch would put them elsewhere, the indexed dimensions are moved to the front.
    """
    axes: list[int] = []
    indices: list[torch.Tensor] = []
    for axis, item in how.advanced:
        if _is_mask(item):
            found = coordinates(places(item), item.shape or (1,))
            axes.extend(range(axis, axis + len(found)))
            indices.extend(found)
        else:
            axes.append(axis)
            indices.append(_checked_by_torch(item, y, axis))
    width = len(broadcast_indices([index.shape for index in indices]))
    if axes == list(range(how.position, how.position + len(axes))):
        return y, (*(slice(None),) * how.position, *indices), width, True
    return y.movedim(axes, list(range(len(axes)))), tuple(indices), width, False


def _get_item(x: torch.Tensor, key: tuple[Any, ...]) -> torch.Tensor:
    how = plan(key, x.shape, _is_mask)
    y = x if how.is_whole and how.advanced else _basic(x, how.basic)
    if not how.advanced:
        return y
    if len(how.advanced) == 1 and _is_mask(how.advanced[0][1]):
        axis, mask = how.advanced[0]
        y = y.reshape(*y.shape[:axis], mask.numel(), *y.shape[axis + max(mask.ndim, 1) :])
        return y.index_select(axis, places(mask)).movedim(axis, how.position)
    y, native_key, width, in_place = _advanced(y, how)
    result = y[native_key]
    if in_place:
        return result
    return result.movedim(list(range(width)), list(range(how.position, how.position + width)))


def _index_update(x: torch.Tensor, key: tuple[Any, ...], values: torch.Tensor) -> torch.Tensor:
    how = plan(key, x.shape, _is_mask)
    if how.reverses:
        return _update_by_number(x, key, values)
    if len(how.advanced) == 1 and how.is_whole and values.numel() == 1 and values.ndim <= 1:
        axis, mask = how.advanced[0]
        if _is_mask(mask):
            return x.masked_fill(mask.reshape(*mask.shape, *(1,) * (x.ndim - axis - mask.ndim)), values.reshape(()))
    if not how.advanced:
        if is_mapped(values) and not is_mapped(x):  # torch 2.13: copies no mapped values into what is not mapped
            return _update_by_number(x, key, values)
        result = x.clone()
        target = _basic(result, how.basic)
        target.copy_(values.reshape(shape_of_values(values.shape, target.shape)))
        return result
    if not how.is_whole:
        return _update_by_number(x, key, values)
    _, native_key, width, in_place = _advanced(x, how)
    if not in_place:
        return _update_by_number(x, key, values)
    return _update_rows(x, native_key[how.position :], how.position, width, values)


def _update_rows(
    x: torch.Tensor, indices: Sequence[torch.Tensor], start: int, width: int, values: torch.Tensor
) -> torch.Tensor:
    """Replace what index tensors select, one for each dimension of ``x`` from ``start`` on."""
    stop = start + len(indices)
    sizes = x.shape[start:stop]
    indices = [in_range(index, size) for index, size in zip(indices, sizes, strict=True)]
    numbers = flat_positions(torch.broadcast_tensors(*indices), sizes)
    target = (*x.shape[:start], *numbers.shape, *x.shape[stop:])
    values = values.reshape(shape_of_values(values.shape, target)).expand(target)
    if not numbers.numel() or not x.numel():
        return x.clone()
    front = list(range(width))
    values = values.movedim(list(range(start, start + width)), front).reshape(-1, *x.shape[:start], *x.shape[stop:])
    front = list(range(len(indices)))
    rows = x.movedim(list(range(start, stop)), front)
    result = _replace_last(rows.reshape(math.prod(sizes), *rows.shape[len(indices) :]), numbers.reshape(-1), values)
    return result.reshape(rows.shape).movedim(front, list(range(start, stop)))


def _replace_last(rows: torch.Tensor, numbers: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """Replace the rows of these numbers; the last value of a row stays, and the gradient reaches that one alone."""
    # torch 2.13: threads decide which of several values stays
    order = torch.arange(len(numbers), device=rows.device)
    last = numbers.new_full((len(rows),), -1).scatter_reduce(0, numbers, order, "amax")
    is_new = (last >= 0).reshape(-1, *(1,) * (rows.ndim - 1))
    return torch.where(is_new, values.index_select(0, last.clamp(min=0)), rows)


def _update_by_number(x: torch.Tensor, key: tuple[Any, ...], values: torch.Tensor) -> torch.Tensor:
    """Update by any key: number the elements, apply the key to the numbers, replace the elements with these numbers."""
    numbers = _get_item(torch.arange(x.numel(), device=x.device).reshape(x.shape), key)
    values = values.reshape(shape_of_values(values.shape, numbers.shape)).expand(numbers.shape)
    if not numbers.numel():
        return x.clone()
    return _replace_last(x.reshape(-1), numbers.reshape(-1), values.reshape(-1)).reshape(x.shape)


def _take(x: torch.Tensor, indices: torch.Tensor, axis: int | None) -> torch.Tensor:
    if axis is None:
        x, axis = x.reshape(-1), 0
    if axis == 0 and x.ndim == 2 and x.is_floating_point():  # embedding has the faster gradient
        if x.shape[0] and _is_checked_by_torch(x):
            try:
                return torch.embedding(x, indices.to(torch.int64))
            except IndexError:  # out of range, or counted from the end
                pass
        return torch.embedding(x, in_range(indices, x.shape[0]))
    inside = in_range(indices, x.shape[axis])
    axis %= x.ndim
    flat = inside.reshape(-1)
    return x.index_select(axis, flat).reshape((*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]))


def _take_along_axis(x: torch.Tensor, indices: torch.Tensor, axis: int) -> torch.Tensor:
    is_whole = axis == -1 and 0 < x.ndim == indices.ndim and x.shape[:-1] == indices.shape[:-1]
    if is_whole and indices.dtype is torch.int64 and _is_checked_by_torch(x):
        try:
            return x.gather(-1, indices)  # nothing is broadcast: a token for each text is found in half the time
        except (IndexError, RuntimeError):
            pass
    wide_x, wide_indices = broadcast_along(x.shape, indices.shape, axis)
    wide = x.expand(wide_x)
    if _is_checked_by_torch(x):
        try:
            return wide.gather(axis, indices.to(torch.int64).expand(wide_indices))
        except (IndexError, RuntimeError):  # out of range, or counted from the end
            pass
    return wide.gather(axis, in_range(indices, x.shape[axis]).expand(wide_indices))


def _put_along_axis(x: torch.Tensor, indices: torch.Tensor, values: torch.Tensor, axis: int) -> torch.Tensor:
    wide_x, wide_indices = broadcast_along(x.shape, indices.shape, axis)
    if wide_x != tuple(x.shape):
        raise ValueError(f"indices of shape {tuple(indices.shape)} name more places than {tuple(x.shape)} has")
    values = values.reshape(shape_of_values(values.shape, wide_indices)).expand(wide_indices)
    indices = in_range(indices, x.shape[axis]).expand(wide_indices)
    if not indices.numel():
        return x.clone()
    axis %= x.ndim
    order = torch.arange(indices.shape[axis], device=x.device).reshape(-1, *(1,) * (x.ndim - 1 - axis))
    last = indices.new_full(x.shape, -1).scatter_reduce(axis, indices, order.expand(wide_indices), "amax")
    return torch.where(last >= 0, values.gather(axis, last.clamp(min=0)), x)


get_item = _move_bits(_get_item)
index_update = _move_bits(_index_update, 2)
take = _move_bits(_take)
take_along_axis = _move_bits(_take_along_axis)
put_along_axis = _move_bits(_put_along_axis, 2)


def nonzero(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    if x.ndim == 0:
        raise ValueError("nonzero needs at least one dimension")
    if x.dtype in _SIGNED:  # torch 2.13: no nonzero of uint16, uint32, uint64
        x = x.view(_SIGNED[x.dtype])
    mask = x if _is_mask(x) else x != 0
    if mask.device.type == "cpu" and not is_inside_transform():
        return tuple(torch.from_numpy(found) for found in np.nonzero(mask.numpy()))
    return mask.nonzero(as_tuple=True)


def argwhere(x: torch.Tensor) -> torch.Tensor:
    return torch.stack(nonzero(x), dim=1)


def unravel_index(indices: torch.Tensor, shape: Sequence[int]) -> tuple[torch.Tensor, ...]:
    return coordinates(in_range(indices, math.prod(shape), wraps=False), shape)


def ravel_multi_index(multi_index: Sequence[torch.Tensor], dims: Sequence[int]) -> torch.Tensor:
    parts = [in_range(index, size, wraps=False) for index, size in zip(multi_index, dims, strict=True)]
    return flat_positions(parts, dims)
