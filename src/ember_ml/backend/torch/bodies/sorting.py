"""Sorting and order statistics, on PyTorch.

On the CPU NumPy sorts several times faster and shares the memory: it sorts tensors that are neither traced nor
differentiated.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from ember_ml.backend.common.axes import axes_of, axis_of, fold_axes, reduced_shape
from ember_ml.backend.common.quantiles import positions, read_probabilities
from ember_ml.backend.contract import ByDType
from ember_ml.backend.numpy.bodies import sorting as host
from ember_ml.backend.torch.bodies.reductions import through_float32
from ember_ml.backend.torch.host_transfer import as_shared_array
from ember_ml.backend.torch.unsigned import from_ordered, ordered, to_ordered
from ember_ml.core import dtypes as dt

Tensor = torch.Tensor


def _sort(x: Tensor, axis: int | None, descending: bool, stable: bool) -> Tensor:
    if axis is None:
        x, axis = x.reshape(-1), 0
    array = as_shared_array(x)
    if array is not None:
        result = torch.from_numpy(host._sort(array, axis, False, stable))
        return result.flip(axis) if descending and x.ndim else result
    if x.is_complex():
        return torch.take_along_dim(x, _argsort(x, axis, descending, stable), axis) if x.ndim else x
    return torch.sort(_comparable(x), axis, descending).values


def _argsort(x: Tensor, axis: int | None, descending: bool, stable: bool) -> Tensor:
    if axis is None:
        x, axis = x.reshape(-1), 0
    array = as_shared_array(x)
    if array is not None:
        return torch.from_numpy(np.asarray(host._argsort(array, axis, descending, stable), order="C"))
    if x.is_complex() and x.ndim:
        by_imag = torch.argsort(_comparable(x.imag), dim=axis, descending=descending, stable=True)
        by_real = torch.argsort(
            torch.take_along_dim(_comparable(x.real), by_imag, axis), dim=axis, descending=descending, stable=True
        )
        return torch.take_along_dim(by_imag, by_real, axis)
    return torch.argsort(_comparable(x.real), dim=axis, descending=descending, stable=stable)


def _argpartition(x: Tensor, kth: int, axis: int) -> Tensor:
    n = x.shape[axis_of(axis, x.ndim)]
    kth = axis_of(kth, n)
    array = as_shared_array(x)
    if array is not None:
        return torch.from_numpy(host._argpartition(array, kth, axis))
    return torch.argsort(_comparable(x), axis)


def _comparable(x: Tensor) -> Tensor:
    """Make equal elements equal bit by bit."""
    # torch 2.11 on CUDA: sorts by bits, -0 before 0 and negative NaN first
    if not x.is_cuda or not x.is_floating_point():
        return x
    return torch.where(x.isnan(), torch.nan, x + 0.0)


def _top_k(x: Tensor, k: int, axis: int, sorted: bool) -> tuple[Tensor, Tensor]:
    axis = axis_of(axis, x.ndim)
    n = x.shape[axis]
    if not 0 <= k <= n:
        raise ValueError(f"there are {n} elements along axis {axis}, of which {k} cannot be taken")
    if x.numel() <= _FEW and x.device.type == "cpu":
        values, indices = torch.sort(x, dim=axis, descending=True, stable=True)
        return values.narrow(axis, 0, k), indices.narrow(axis, 0, k)
    rows = x.movedim(axis, -1)
    indices = _first_largest(rows.detach(), k).movedim(-1, axis)
    return torch.take_along_dim(x, indices, axis), indices


_FEW = 512
"""Elements that are sorted in less time than the calls of a selection take."""


def _first_largest(rows: Tensor, k: int) -> Tensor:
    """Return the indices of the ``k`` largest, the first of equal elements first."""
    # torch 2.13: topk takes any of equal elements, in any order
    if rows.dtype is torch.bool:
        rows = rows.to(torch.uint8)
    rows, n = _comparable(rows), rows.shape[-1]
    if not k or not rows.numel():
        return torch.zeros((*rows.shape[:-1], k), dtype=torch.int64, device=rows.device)
    values, indices = torch.topk(rows, min(k + 1, n))
    is_readable = as_shared_array(rows) is not None
    if is_readable and bool((values[..., :-1] > values[..., 1:]).all()):
        return indices[..., :k]
    is_clear = k == n or (is_readable and not _equal(values[..., k - 1], values[..., k]).any())
    indices, by_index = torch.sort(indices[..., :k])
    values, by_value = torch.sort(torch.gather(values, -1, by_index), descending=True, stable=True)
    indices = torch.gather(indices, -1, by_value)
    if is_clear:
        return indices
    smallest = values[..., -1:]
    tied = torch.where(_equal(rows, smallest), torch.arange(n, device=rows.device), n)
    first = torch.topk(tied, k, largest=False).values
    larger = k - torch.sum(_equal(values, smallest), -1, True)
    place = torch.arange(k, device=rows.device)
    return torch.where(place < larger, indices, torch.gather(first, -1, (place - larger).clamp(min=0)))


def _equal(x: Tensor, y: Tensor) -> Tensor:
    """Compare elements, with NaN equal to NaN."""
    return (x == y) | (x.isnan() & y.isnan()) if x.is_floating_point() else x == y


def _quantile(x: Tensor, q: Any, axis: Any, keepdims: bool, method: str) -> Tensor:
    array = as_shared_array(x)
    if array is not None:
        return torch.from_numpy(host._quantile(array, q, axis, keepdims, method))
    outer, probabilities = read_probabilities(q)
    rows, shape = _rows(x, axis, keepdims)
    shape = (*outer, *shape)
    if not rows.shape[-1]:
        return x.new_full(shape, torch.nan)
    below, above, weight = positions(rows.shape[-1], probabilities, method)
    part = torch.sort(rows, -1).values
    result = _between(part[..., below], part[..., above], torch.tensor(weight, dtype=x.dtype, device=x.device))
    result = torch.where(part[..., -1:].isnan(), torch.nan, result)
    return result.movedim(-1, 0).reshape(shape)


def _rows(x: Tensor, axis: Any, keepdims: bool) -> tuple[Tensor, tuple[int, ...]]:
    """Fold the reduced axes into the last one; return that and the shape of the result."""
    axes = axes_of(axis, x.ndim)
    order, together = fold_axes(x.shape, axes)
    return x.permute(order).reshape(together), reduced_shape(x.shape, axes, keepdims)


def _between(low: Tensor, high: Tensor, weight: Tensor | float) -> Tensor:
    between = low * (1 - weight) + high * weight
    return torch.where(low == high, low, between)  # the mean of equal infinities is NaN


def _median(x: Tensor, axis: Any, keepdims: bool) -> Tensor:
    array = as_shared_array(x)
    if array is not None:
        return torch.from_numpy(host._median(array, axis, keepdims))
    rows, shape = _rows(x, axis, keepdims)
    if not rows.shape[-1]:
        return x.new_full(shape, torch.nan)
    # torch 2.13: median is the lower of the two middle elements (pytorch#39520)
    low, high = torch.median(rows, -1).values, -torch.median(-rows, -1).values
    return _between(low, high, 0.5).reshape(shape)


def _unsigned_top_k(x: Tensor, k: int, axis: int, sorted: bool) -> tuple[Tensor, Tensor]:
    if x.dtype is torch.uint64:
        values, indices = _top_k(to_ordered(x), k, axis, sorted)
        return from_ordered(values), indices
    values, indices = _top_k(x.to(torch.int64), k, axis, sorted)
    return values.to(x.dtype), indices


sort = ByDType(_sort, ordered(_sort))
argsort = ByDType(_argsort, ordered(_argsort, values=False))
argpartition = ByDType(_argpartition, ordered(_argpartition, values=False))
top_k = ByDType(_top_k, dict.fromkeys((dt.uint16, dt.uint32, dt.uint64), _unsigned_top_k))
quantile = ByDType(_quantile, dict.fromkeys(dt.HALVES, through_float32(_quantile)))
median = ByDType(_median, dict.fromkeys(dt.HALVES, through_float32(_median)))
