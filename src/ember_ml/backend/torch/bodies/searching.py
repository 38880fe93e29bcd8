"""Distinct values, positions in sorted data, and counts, on PyTorch."""

from __future__ import annotations

from typing import Any

import torch

from ember_ml.backend.common.named_results import UniqueAllResult, UniqueCountsResult, UniqueInverseResult
from ember_ml.backend.common.unique import descends, unique_parts
from ember_ml.backend.contract import ByDType
from ember_ml.backend.torch.bodies.indexing import in_range
from ember_ml.backend.torch.bodies.scatter import segment_sum
from ember_ml.backend.torch.readable_values import values_are_read
from ember_ml.backend.torch.unsigned import UNSIGNED, ordered
from ember_ml.core.dtypes import as_dtype


def _through_numpy(x: torch.Tensor, *parts: bool) -> tuple[torch.Tensor, ...] | None:
    """Return the parts of ``unique_parts`` by NumPy where it is faster: three times for floats on the CPU."""
    # torch 2.13: no unique of complex numbers, nor of uint16, uint32 and uint64
    can_sort = not (x.dtype in UNSIGNED or x.dtype.is_complex)
    on_host = x.device.type == "cpu" and not x.requires_grad and not torch.compiler.is_compiling()
    if can_sort and (not on_host or not x.dtype.is_floating_point):
        return None
    if x.dtype is torch.bfloat16:  # NumPy cannot read it
        found = _through_numpy(x.float(), *parts)
        return found and (found[0].to(torch.bfloat16), *found[1:])
    found = unique_parts(x.detach().cpu().resolve_conj().resolve_neg().numpy(), *parts)
    return tuple(torch.from_numpy(part).to(x.device) for part in found)


def unique_values(x: torch.Tensor) -> torch.Tensor:
    found = _through_numpy(x, False, False, False)
    return torch.unique(x) if found is None else found[0]


def unique_all(x: torch.Tensor) -> UniqueAllResult:
    found: Any = _through_numpy(x, True, True, True)
    if found is None:
        values, inverse, counts = torch.unique(x, return_inverse=True, return_counts=True)
        places = torch.arange(x.numel(), device=x.device)
        first = torch.full_like(counts, x.numel()).scatter_reduce_(0, inverse.reshape(-1), places, "amin")
        found = values, first, inverse, counts
    return UniqueAllResult(*found)


def unique_counts(x: torch.Tensor) -> UniqueCountsResult:
    found: Any = _through_numpy(x, False, False, True)
    return UniqueCountsResult(*(torch.unique(x, return_counts=True) if found is None else found))


def unique_inverse(x: torch.Tensor) -> UniqueInverseResult:
    found: Any = _through_numpy(x, False, True, False)
    return UniqueInverseResult(*(torch.unique(x, return_inverse=True) if found is None else found))


def _searchsorted(x: torch.Tensor, y: torch.Tensor, side: str, sorter: torch.Tensor | None) -> torch.Tensor:
    if side not in ("left", "right"):
        raise ValueError(f"side is 'left' or 'right', not {side!r}")
    if x.ndim != 1:
        raise ValueError(f"x must have one dimension, not the shape {tuple(x.shape)}")
    if sorter is not None:
        x = x[in_range(sorter, len(x))]
    if not x.dtype.is_floating_point:
        return torch.searchsorted(x.contiguous(), y.contiguous(), side=side)
    # torch 2.13: NaN has no order; here it comes last
    numbers = len(x) - x.isnan().sum()
    found = torch.searchsorted(x.masked_fill(x.isnan(), torch.inf).contiguous(), y.contiguous(), side=side)
    return torch.where(y.isnan(), numbers if side == "left" else len(x), torch.minimum(found, numbers))


searchsorted = ByDType(_searchsorted, ordered(_searchsorted, values=False))


def _digitize(x: torch.Tensor, bins: torch.Tensor, right: bool) -> torch.Tensor:
    side = "left" if right else "right"
    if values_are_read(bins) and descends(bins.detach().cpu().to(_exact(bins)).numpy()):
        return len(bins) - _searchsorted(bins.flip(0), x, side, None)
    return _searchsorted(bins, x, side, None)  # traced: the order of bins cannot be read


def _exact(x: torch.Tensor) -> torch.dtype:
    """Return a dtype that NumPy has and that holds the values."""
    return torch.float32 if x.dtype is torch.bfloat16 else x.dtype


digitize = ByDType(_digitize, ordered(_digitize, values=False))


def bincount(x: torch.Tensor, weights: torch.Tensor | None, minlength: int) -> torch.Tensor:
    x = x.to(torch.int64)
    if weights is None:
        # torch 2.11 on CUDA: a count of 2**63 overflows, and the kernel writes outside of its memory
        if x.device.type != "cpu" and x.numel() and int(x.max()) == 2**63 - 1:
            raise MemoryError("bincount of an integer beyond every memory")
        return torch.bincount(x, minlength=minlength)
    if x.numel() and int(x.min()) < 0:
        raise ValueError("bincount counts no negative integers")
    body = segment_sum.others.get(as_dtype(weights.dtype), segment_sum.native)
    return body(weights, x, max(int(x.max()) + 1 if x.numel() else 0, minlength), False)
