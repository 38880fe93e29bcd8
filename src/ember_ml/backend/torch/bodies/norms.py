"""Norms and distances, on PyTorch."""

from __future__ import annotations

import torch

from ember_ml.typing import AxisLike


def vector_norm(x: torch.Tensor, axis: AxisLike | None, keepdims: bool, ord: float) -> torch.Tensor:
    if not isinstance(ord, int | float):
        raise ValueError(f"the order of a vector norm is a number, not {ord!r}")
    if axis == ():  # torch 2.13: means all dimensions (pytorch#29137)
        return (x != 0).to(x.real.dtype) if ord == 0 else x.abs()
    return torch.linalg.vector_norm(x, ord, axis, keepdims)


def cdist(x: torch.Tensor, y: torch.Tensor, p: float) -> torch.Tensor:
    if x.ndim < 2 or y.ndim < 2:
        raise ValueError(f"cdist takes tensors of at least 2 dimensions, not {x.ndim} and {y.ndim}")
    own = x.dtype
    if own.itemsize < 4:
        x, y = x.float(), y.float()
    # torch 2.13: by default a matrix product, which loses the precision of rows that are close to each other
    return torch.cdist(x, y, p, compute_mode="donot_use_mm_for_euclid_dist").to(own)
