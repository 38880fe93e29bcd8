"""Convolutions, on MLX."""

# MLX 0.32: on the CPU, its own function is the fastest only for the plain case and with a real BLAS; a stride (in
# gradients), a dilation or groups make it up to 30 times slower than a product of windows; it takes float64 in some
# cases only.

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mlx.core as mx

from ember_ml.backend.common.convolution import Convolution, convolution, is_channels_first, windowed_convolution
from ember_ml.backend.mlx import blas


def conv(
    x: mx.array,
    kernel: mx.array,
    strides: int | Sequence[int],
    padding: Any,
    data_format: str,
    dilation_rate: int | Sequence[int],
) -> mx.array:
    plan = convolution(x.shape, kernel.shape, strides, padding, data_format, dilation_rate)
    own, first = x.dtype, is_channels_first(data_format, x.ndim)
    if first:
        x = mx.moveaxis(x, 1, -1)
    if _takes(x, plan):
        result = _native(x, kernel, plan)
    else:
        wide = mx.float64 if own == mx.float64 else mx.float32
        result = windowed_convolution(mx, x.astype(wide), kernel.astype(wide), plan).astype(own)
    return mx.moveaxis(result, -1, 1) if first else result


def _takes(x: mx.array, plan: Convolution) -> bool:
    """Whether MLX's own function computes this convolution correctly and fast."""
    sliding, groups = plan
    if x.dtype == mx.float64 or (groups > 1 and len(sliding.window) == 3) or 0 in x.shape:
        return False
    if mx.default_device() != mx.cpu:
        return True
    plain = groups == max(sliding.strides) == max(sliding.dilations) == 1
    return plain and blas.library is not None


def _native(x: mx.array, kernel: mx.array, plan: Convolution) -> mx.array:
    sliding, groups = plan
    before, after = zip(*sliding.padding, strict=True)
    return mx.conv_general(
        x,
        mx.moveaxis(kernel, -1, 0),
        stride=list(sliding.strides),
        padding=(list(before), list(after)),
        kernel_dilation=list(sliding.dilations),
        groups=groups,
    )
