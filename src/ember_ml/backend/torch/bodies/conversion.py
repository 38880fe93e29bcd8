"""Conversion between dtypes, on PyTorch."""

from __future__ import annotations

import torch

copy = torch.clone


def view(x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    if x.dtype.itemsize == dtype.itemsize:
        return x.view(dtype)
    if not x.numel() and x.shape[-1] * x.dtype.itemsize % dtype.itemsize == 0:
        # torch 2.13: the strides of an empty tensor need not fit the sizes of the elements
        return x.new_empty((*x.shape[:-1], x.shape[-1] * x.dtype.itemsize // dtype.itemsize), dtype=dtype)
    x = x.contiguous()
    # torch 2.13: refuses such an offset, and the odd strides that axes of length 1 may have
    if x.storage_offset() * x.dtype.itemsize % dtype.itemsize or 1 in x.shape:
        x = x.clone(memory_format=torch.contiguous_format)
    return x.view(dtype)


stop_gradient = torch.Tensor.detach
