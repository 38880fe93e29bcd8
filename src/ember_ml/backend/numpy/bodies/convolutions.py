"""Convolutions on NumPy: copy the windows into a matrix, a block at a time, and multiply."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ember_ml.backend.common.convolution import Sliding, convolution, is_channels_first
from ember_ml.backend.host_arrays import as_float32
from ember_ml.backend.numpy.cache_blocks import blocks
from ember_ml.backend.numpy.sliding_windows import padded, row_blocks, weights_of, windows_of

_CHANNELWISE_BLOCK = 1 << 17  # elements of the result


def conv(
    x: np.ndarray,
    kernel: np.ndarray,
    strides: int | Sequence[int],
    padding: Any,
    data_format: str,
    dilation_rate: int | Sequence[int],
) -> np.ndarray:
    sliding, groups = convolution(x.shape, kernel.shape, strides, padding, data_format, dilation_rate)
    own, first = x.dtype, is_channels_first(data_format, x.ndim)
    if own.itemsize < 4:
        x, kernel = as_float32(x), as_float32(kernel)
    if first:
        x = np.moveaxis(x, 1, -1)
    x = padded(x, sliding)
    if groups == 1:
        result = _products(x, kernel, sliding)
    elif kernel.shape[-2] == 1:
        result = _channelwise(x, kernel, sliding)
    else:
        inputs, kernels = np.split(x, groups, axis=-1), np.split(kernel, groups, axis=-1)
        result = np.concatenate([_products(*pair, sliding) for pair in zip(inputs, kernels, strict=True)], axis=-1)
    if own.itemsize < 4:
        with np.errstate(over="ignore"):  # float16 overflows so soon that infinity is an ordinary result
            result = result.astype(own)
    return np.moveaxis(result, -1, 1) if first else result


def _products(x: np.ndarray, kernel: np.ndarray, sliding: Sliding) -> np.ndarray:
    """Convolve one group of channels."""
    outside = kernel.shape[-1]
    weights = weights_of(kernel).T
    result = np.empty((len(x), *sliding.results, outside), dtype=x.dtype)
    for block, rows in row_blocks(windows_of(x, sliding), sliding):
        np.matmul(rows, weights, out=result[block].reshape(-1, outside))
    return result


def _channelwise(x: np.ndarray, kernel: np.ndarray, sliding: Sliding) -> np.ndarray:
    """Convolve channels that are one group each: sums of multiples instead of matrix products."""
    outside = kernel.shape[-1]
    weights = kernel.reshape(-1, outside)
    if outside > x.shape[-1]:
        x = np.repeat(x, outside // x.shape[-1], axis=-1)
    result = np.empty((x.shape[0], *sliding.results, outside), dtype=x.dtype)
    for block in blocks(result.shape[:1], max(_CHANNELWISE_BLOCK // math.prod(result.shape[1:]), 1)):
        part, target = x[block], result[block]
        cuts = sliding.cuts()
        np.multiply(part[next(cuts)], weights[0], out=target)
        product = np.empty_like(target)
        for cut, weight in zip(cuts, weights[1:], strict=True):
            target += np.multiply(part[cut], weight, out=product)
    return result
