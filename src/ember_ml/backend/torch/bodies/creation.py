"""Creation of tensors, on PyTorch."""

from __future__ import annotations

from typing import Any

import torch

from ember_ml.backend.common.ranges import host_arange, integer_arange
from ember_ml.backend.common.shapes import as_shape, grid
from ember_ml.backend.torch.host_transfer import from_host
from ember_ml.backend.torch.unsigned import UNSIGNED
from ember_ml.core.dtypes import find_dtype


def zeros(shape: Any, dtype: torch.dtype | None, device: str) -> torch.Tensor:
    return torch.zeros(as_shape(shape), dtype=torch.float32 if dtype is None else dtype, device=device)


def ones(shape: Any, dtype: torch.dtype | None, device: str) -> torch.Tensor:
    return torch.ones(as_shape(shape), dtype=torch.float32 if dtype is None else dtype, device=device)


def empty(shape: Any, dtype: torch.dtype | None, device: str) -> torch.Tensor:
    return torch.empty(as_shape(shape), dtype=torch.float32 if dtype is None else dtype, device=device)


def eye(n_rows: Any, n_cols: Any, k: int, dtype: torch.dtype | None, device: str) -> torch.Tensor:
    result = zeros((n_rows, n_rows if n_cols is None else n_cols), dtype, device)
    if -result.shape[0] < k < result.shape[1]:
        result.diagonal(k).fill_(1)  # torch 2.13: eye has the main diagonal only
    return result


def arange(start: Any, stop: Any, step: Any, dtype: torch.dtype | None, device: str) -> torch.Tensor:
    integers = None if dtype in UNSIGNED else integer_arange(start, stop, step, find_dtype(dtype))
    if integers is None or not integers:
        return from_host(host_arange(start, stop, step, find_dtype(dtype)), device)
    return torch.arange(integers.start, integers.stop, integers.step, dtype=dtype or torch.int64, device=device)


def meshgrid(arrays: list[torch.Tensor], indexing: str) -> tuple[torch.Tensor, ...]:
    return tuple(x.reshape(own).broadcast_to(shape) for x, own, shape in grid(arrays, indexing))
