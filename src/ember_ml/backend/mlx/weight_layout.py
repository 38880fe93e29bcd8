"""Order weights in memory as MLX's own BLAS on Linux reads them fastest."""

from __future__ import annotations

from typing import Any

import mlx.core as mx

__all__ = ["arrange"]


def arrange(weight: Any) -> mx.array:
    # MLX 0.32: the reference BLAS of the wheel for Linux adds up the products of a row one by one; where the weight
    # lies column by column it adds scaled columns, which compilers vectorize: 0.4 to 0.6 of the time
    if weight.ndim != 2 or weight.dtype != mx.float32 or mx.default_device() != mx.cpu:
        return weight
    strides = memoryview(weight).strides
    if strides is None or strides[0] <= strides[1]:
        return weight
    columns = mx.contiguous(weight.T)
    mx.eval(columns)  # at once, so that a model has one weight twice, and not all
    return columns.T
