"""Fourier transforms, on PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from ember_ml.backend.common.signal import check_norm, lengths_and_axes


def _irfftn(x: torch.Tensor, s: Sequence[int], axes: Sequence[int], norm: str) -> torch.Tensor:
    """Transform the last axis last."""
    # torch 2.11 on CUDA: cuFFT's transform of several axes is another one for non-Hermitian input (pytorch#154496)
    if not x.is_cuda or len(axes) < 2:
        return torch.fft.irfftn(x, s, axes, norm)
    return torch.fft.irfft(torch.fft.ifftn(x, s[:-1], axes[:-1], norm), s[-1], axes[-1], norm)


_HALF_OUT = (torch.fft.rfft, torch.fft.rfftn)
_HALF_IN = (torch.fft.irfft, _irfftn)


def _one(native: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    def body(x: torch.Tensor, n: int | None, axis: int, norm: str) -> torch.Tensor:
        check_norm(norm)
        if x.numel():
            return native(x, n, axis, norm)
        lengths, axes = lengths_and_axes(x.shape, None if n is None else (n,), (axis,), native in _HALF_IN)
        return _transform_empty(native, x, lengths, axes)

    return body


def _several(native: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    def body(x: torch.Tensor, s: Sequence[int] | None, axes: Sequence[int] | None, norm: str) -> torch.Tensor:
        check_norm(norm)
        lengths, found = lengths_and_axes(x.shape, s, axes, native in _HALF_IN)
        return native(x, lengths, found, norm) if x.numel() else _transform_empty(native, x, lengths, found)

    return body


def _transform_empty(
    native: Callable[..., torch.Tensor], x: torch.Tensor, lengths: tuple[int, ...], axes: tuple[int, ...]
) -> torch.Tensor:
    """Return the transform of a tensor without elements: zeros, where padding adds elements at all."""
    # torch 2.13: MKL refuses tensors without elements (pytorch#174984)
    shape = list(x.shape)
    for n, axis in zip(lengths, axes, strict=True):
        shape[axis] = n
    if native in _HALF_OUT:
        shape[axes[-1]] = lengths[-1] // 2 + 1
    dtype = x.real.dtype if native in _HALF_IN else x.dtype.to_complex()
    return torch.zeros(shape, dtype=dtype, device=x.device)


fft = _one(torch.fft.fft)
ifft = _one(torch.fft.ifft)
rfft = _one(torch.fft.rfft)
irfft = _one(torch.fft.irfft)
fftn = _several(torch.fft.fftn)
ifftn = _several(torch.fft.ifftn)
rfftn = _several(torch.fft.rfftn)
irfftn = _several(_irfftn)
