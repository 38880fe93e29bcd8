"""Running sums and correlation, on PyTorch."""

from __future__ import annotations

import torch

from ember_ml.backend.common.axes import check_scalar_axis
from ember_ml.backend.common.signal import overhang
from ember_ml.backend.contract import ByDType
from ember_ml.backend.torch.bodies.reductions import accumulating
from ember_ml.backend.torch.unsigned import unsigned
from ember_ml.core import dtypes as dt

Tensor = torch.Tensor


def _cumsum(x: Tensor, axis: int | None, dtype: None) -> Tensor:
    if not x.ndim:
        check_scalar_axis(axis)
    if axis is None:
        x, axis = x.reshape(-1), 0
    if x.is_cuda and x.dtype is torch.float32:  # torch 2.11 on CUDA: 1.7e-4 off after 20,000 along a strided axis
        return torch.cumsum(x, axis, dtype=torch.float64).to(x.dtype)
    return torch.cumsum(x, axis)


def _cumprod(x: Tensor, axis: int | None, dtype: None) -> Tensor:
    if not x.ndim:
        check_scalar_axis(axis)
    return torch.cumprod(x.reshape(-1), 0) if axis is None else torch.cumprod(x, axis)


def _correlate(x: Tensor, y: Tensor, mode: str) -> Tensor:
    padding = overhang(x.shape, y.shape, mode)
    if len(x) < len(y):
        return _correlate(y, x, mode).conj().resolve_conj().flip(0)
    x, y = torch.nn.functional.pad(x, padding), y.conj().resolve_conj()
    if x.is_floating_point() or x.is_complex():
        return torch.nn.functional.conv1d(x[None, None], y[None, None])[0, 0]
    # torch 2.13: no convolution of integers
    windows = x.unfold(0, len(y), 1)
    return torch.sum(windows * y, -1).to(x.dtype)


def _half_correlate(x: Tensor, y: Tensor, mode: str) -> Tensor:
    return _correlate(x.to(torch.float32), y.to(torch.float32), mode).to(x.dtype)


cumsum = accumulating(_cumsum)
cumprod = accumulating(_cumprod)
correlate = ByDType(_correlate, {**unsigned(_correlate), **dict.fromkeys(dt.HALVES, _half_correlate)})
