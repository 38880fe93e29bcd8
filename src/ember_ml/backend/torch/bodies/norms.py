"""Norms and distances, on PyTorch."""

from __future__ import annotations

import math

import torch

from ember_ml.backend.common.axes import check_scalar_axis
from ember_ml.backend.torch.gradients import may_be_differentiated_again
from ember_ml.backend.torch.readable_values import values_are_read
from ember_ml.typing import AxisLike


def vector_norm(x: torch.Tensor, axis: AxisLike | None, keepdims: bool, ord: float) -> torch.Tensor:
    if not isinstance(ord, int | float):
        raise ValueError(f"the order of a vector norm is a number, not {ord!r}")
    if x.ndim == 0:
        check_scalar_axis(axis)
    if axis == ():  # torch 2.13: means all dimensions (pytorch#29137)
        return (x != 0).to(x.real.dtype) if ord == 0 else x.abs()
    if ord in (0, 1) or math.isinf(ord):
        if ord == 0 and x.is_complex():  # torch 2.13: warns that it drops the imaginary part of one number
            x = (x != 0).to(x.real.dtype)
        return torch.linalg.vector_norm(x, ord, axis, keepdims)
    if ord < 0 or not x.numel() or not may_be_differentiated_again():
        return _root_of_powers(x, axis, keepdims, ord)
    # torch 2.13: the second derivative is NaN where the norm is 0
    is_zero = torch.linalg.vector_norm(x.detach(), torch.inf, axis, True) == 0
    result = _root_of_powers(torch.where(is_zero, 1, x), axis, keepdims, ord)
    return torch.where(is_zero.reshape(result.shape), 0, result)


def _root_of_powers(x: torch.Tensor, axis: AxisLike | None, keepdims: bool, ord: float) -> torch.Tensor:
    if x.real.dtype is not torch.float64 and x.device.type != "mps":
        # in double precision no power of float32 overflows, and long sums keep their digits
        wide = torch.complex128 if x.is_complex() else torch.float64
        return torch.linalg.vector_norm(x, ord, axis, keepdims, dtype=wide).to(x.real.dtype)
    result = torch.linalg.vector_norm(x, ord, axis, keepdims)
    if not x.numel() or ord < 0:
        return result
    limits = torch.finfo(result.dtype)
    if values_are_read(result) and bool(((result < limits.max) & (result > limits.tiny**0.5 * 1e4)).all()):
        return result
    scale = torch.linalg.vector_norm(x.detach(), torch.inf, axis, True)
    scale = torch.where((scale > 0) & torch.isfinite(scale), scale, 1)
    scaled = torch.linalg.vector_norm(x / scale, ord, axis, keepdims)
    return scaled * scale.reshape(scaled.shape)


def cdist(x: torch.Tensor, y: torch.Tensor, p: float) -> torch.Tensor:
    if x.ndim < 2 or y.ndim < 2:
        raise ValueError(f"cdist takes tensors of at least 2 dimensions, not {x.ndim} and {y.ndim}")
    own = x.dtype
    p = p if x.shape[-1] else 1.0  # nothing is the largest of none
    if own.itemsize < 4:
        x, y = x.float(), y.float()
    if may_be_differentiated_again() or (math.isinf(p) and (x.requires_grad or y.requires_grad)):
        # torch 2.13: no second derivative, none forward; each of several largest differences gets the whole gradient
        return vector_norm(x.unsqueeze(-2) - y.unsqueeze(-3), -1, False, p).to(own)
    # torch 2.13: by default a matrix product, which loses the precision of rows that are close to each other
    return torch.cdist(x, y, p, compute_mode="donot_use_mm_for_euclid_dist").to(own)
