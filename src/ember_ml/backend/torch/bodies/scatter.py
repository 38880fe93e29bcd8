"""Scatter: reduce rows into segments, on PyTorch."""

from __future__ import annotations

from typing import Any

import torch

from ember_ml.backend import value_checks as checks
from ember_ml.backend.common.scatter import cells, check_shapes, partial_sums
from ember_ml.backend.contract import ByDType
from ember_ml.backend.torch.half_precision import HALVES
from ember_ml.backend.torch.readable_values import is_mapped
from ember_ml.backend.torch.unsigned import UNSIGNED, from_ordered, to_ordered, unsigned


def _check_ids(data: torch.Tensor, ids: torch.Tensor, count: int | None) -> tuple[torch.Tensor, int]:
    """Check the segment ids; return them and the number of segments."""
    ids = ids.to(torch.int64)
    if count is not None and (torch.compiler.is_compiling() or is_mapped(ids)):
        check_shapes(data.shape, ids.shape)
        return ids.clamp(0, count - 1), count
    if count is not None and checks.enabled and data.device.type == "cpu" and data.numel():
        check_shapes(data.shape, ids.shape)
        return ids, count  # torch checks them itself when it scatters on the CPU
    low, high = (int(bound) for bound in torch.aminmax(ids)) if ids.numel() else (0, -1)
    count, is_inside = cells(data.shape, ids.shape, count, low, high)
    return ids if is_inside else ids.clamp(0, count - 1), count


def _expand_like_rows(ids: torch.Tensor, data: torch.Tensor) -> torch.Tensor:
    return ids.reshape(-1, *(1,) * (data.ndim - 1)).expand(data.shape)


def _sum(data: torch.Tensor, segment_ids: torch.Tensor, num_segments: int | None, sorted: bool) -> torch.Tensor:
    ids, count = _check_ids(data, segment_ids, num_segments)
    return _sum_rows(data, ids, count)


def _sum_rows(data: torch.Tensor, ids: torch.Tensor, count: int) -> torch.Tensor:
    wide = data.to(torch.float32) if data.dtype in HALVES else data
    is_exact = not (wide.dtype.is_floating_point or wide.dtype.is_complex)
    parts = 1 if is_exact else partial_sums(len(ids), count)
    if is_mapped(ids) or is_mapped(wide):  # torch 2.13: adds no mapped rows to what is not mapped
        return wide.new_zeros((count, *data.shape[1:])).index_add(0, ids, wide).to(data.dtype)
    if data.ndim > 1:
        sums = wide.new_zeros((parts, count, *data.shape[1:]))
        step = max(-(-len(ids) // parts), 1)
        for part in range(parts):
            rows = slice(part * step, (part + 1) * step)
            sums[part].index_add_(0, ids[rows], wide[rows])
        return sums.sum(0, dtype=sums.dtype).to(data.dtype) if parts > 1 else sums[0].to(data.dtype)
    head = len(ids) // parts * parts
    sums = wide.new_zeros((parts, count))
    sums = sums.scatter_add(1, ids[:head].reshape(parts, -1), wide[:head].reshape(parts, -1))
    total = sums.sum(0) if parts > 1 else sums[0]
    return (total.scatter_add(0, ids[head:], wide[head:]) if head < len(ids) else total).to(data.dtype)


segment_sum = ByDType(_sum, unsigned(_sum))


def segment_mean(data: torch.Tensor, segment_ids: torch.Tensor, num_segments: int | None, sorted: bool) -> torch.Tensor:
    ids, count = _check_ids(data, segment_ids, num_segments)
    sums = _sum_rows(data.to(torch.float32) if data.dtype in HALVES else data, ids, count)
    return (sums / _sizes(ids, count, data.ndim).clamp(min=1)).to(data.dtype)


def segment_max(data: torch.Tensor, segment_ids: torch.Tensor, num_segments: int | None, sorted: bool) -> torch.Tensor:
    return _extreme("amax", data, segment_ids, num_segments)


def segment_min(data: torch.Tensor, segment_ids: torch.Tensor, num_segments: int | None, sorted: bool) -> torch.Tensor:
    return _extreme("amin", data, segment_ids, num_segments)


def _extreme(reduce: str, data: torch.Tensor, segment_ids: torch.Tensor, num_segments: int | None) -> torch.Tensor:
    ids, count = _check_ids(data, segment_ids, num_segments)
    raw = to_ordered(data) if data.dtype is torch.uint64 else data.to(torch.int64) if data.dtype in UNSIGNED else data
    start: Any
    if raw.dtype.is_floating_point:
        start = -torch.inf if reduce == "amax" else torch.inf
    else:
        start = torch.iinfo(raw.dtype).min if reduce == "amax" else torch.iinfo(raw.dtype).max
    found = raw.new_full((count, *data.shape[1:]), start).scatter_reduce(0, _expand_like_rows(ids, raw), raw, reduce)
    # include_self=False would also leave empty segments at 0, but takes twice as long as counting
    found = from_ordered(found).view(torch.int64) if data.dtype is torch.uint64 else found
    found = torch.where(_sizes(ids, count, found.ndim) == 0, 0, found)
    return found.view(torch.uint64) if data.dtype is torch.uint64 else found.to(data.dtype)


def _sizes(ids: torch.Tensor, count: int, ndim: int) -> torch.Tensor:
    """Return how many rows each segment has, shaped to broadcast with its rows."""
    if torch.compiler.is_compiling() or is_mapped(ids):  # where the shape of bincount is unknown
        sizes = ids.new_zeros((count,)).scatter_add(0, ids, torch.ones_like(ids))
    else:
        sizes = torch.bincount(ids, minlength=count)
    return sizes.reshape(count, *(1,) * (ndim - 1))


def _prod(data: torch.Tensor, segment_ids: torch.Tensor, num_segments: int | None, sorted: bool) -> torch.Tensor:
    ids, count = _check_ids(data, segment_ids, num_segments)
    wide = data.to(torch.float32) if data.dtype in HALVES else data
    found = wide.new_ones((count, *data.shape[1:])).scatter_reduce(0, _expand_like_rows(ids, wide), wide, "prod")
    return torch.where(_sizes(ids, count, found.ndim) == 0, 0, found).to(data.dtype)


segment_prod = ByDType(_prod, unsigned(_prod))


def one_hot(x: torch.Tensor, num_classes: int, axis: int, dtype: torch.dtype | None) -> torch.Tensor:
    found = x.to(torch.int64)[..., None] == torch.arange(num_classes, device=x.device)
    return found.movedim(-1, axis).to(torch.float32 if dtype is None else dtype)
