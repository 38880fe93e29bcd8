"""Conversion between dtypes, on PyTorch."""

from __future__ import annotations

from typing import Any

import torch

from ember_ml.backend.torch.readable_values import is_mapped

copy = torch.clone


def view(x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    if is_mapped(x):
        return _ViewOfSamples.apply(x, dtype)
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


class _ViewOfSamples(torch.autograd.Function):
    # torch 2.11: no batching rule for views in another dtype
    @staticmethod
    def forward(x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        return view(x, dtype)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: torch.Tensor) -> None:
        ctx.mark_non_differentiable(output)

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> tuple[torch.Tensor, int]:
        x, dtype = args
        return view(x.movedim(in_dims[0], 0), dtype), 0


stop_gradient = torch.Tensor.detach
