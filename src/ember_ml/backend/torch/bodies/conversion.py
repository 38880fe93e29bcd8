"""Conversion between dtypes, on PyTorch."""

from __future__ import annotations

import torch

copy = torch.clone


def view(x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    if x.dtype.itemsize != dtype.itemsize:
        x = x.contiguous()
        if x.storage_offset() * x.dtype.itemsize % dtype.itemsize:  # torch 2.13: refuses such an offset
            x = x.clone()
    return x.view(dtype)


stop_gradient = torch.Tensor.detach
