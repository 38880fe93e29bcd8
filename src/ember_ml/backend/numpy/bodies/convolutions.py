"""Convolutions on NumPy: copy the windows into a matrix, a block at a time, and multiply."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ember_ml.backend.common.convolution import Sliding, convolution, is_channels_first
from ember_ml.backend.host_arrays import as_float32
from ember_ml.backend.numpy.cache_blocks import blocks

_BLOCK = 1 << 19  # elements of the matrix of windows; measured: two thirds of the time of one whole matrix


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
    if sliding.is_padded:
        x = np.pad(x, sliding.pairs())
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
    batch, channels, outside = x.shape[0], x.shape[-1], kernel.shape[-1]
    weights = kernel.reshape(-1, outside)
    width = weights.shape[0]
    places = (batch, *sliding.results)
    if width == channels:
        return x[next(sliding.cuts())] @ weights
    along = x.strides[1:-1]
    steps = [step * stride for step, stride in zip(along, sliding.strides, strict=True)]
    inner = [step * dilation for step, dilation in zip(along, sliding.dilations, strict=True)]
    shape = (*places, *sliding.window, channels)
    windows = as_strided(x, shape, (x.strides[0], *steps, *inner, x.strides[-1]), writeable=False)
    result = np.empty((*places, outside), dtype=x.dtype)
    buffer = np.empty(min(max(_BLOCK, width), math.prod(places) * width), dtype=x.dtype)
    for block in blocks(places, max(_BLOCK // width, 1)):
        part, target = windows[block], result[block]
        rows = buffer[: part.size]
        rows.reshape(part.shape)[...] = part
        np.matmul(rows.reshape(-1, width), weights, out=target.reshape(-1, outside))
    return result


def _channelwise(x: np.ndarray, kernel: np.ndarray, sliding: Sliding) -> np.ndarray:
    """Convolve channels that are one group each: sums of multiples instead of matrix products."""
    outside = kernel.shape[-1]
    weights = kernel.reshape(-1, outside)
    if outside > x.shape[-1]:
        x = np.repeat(x, outside // x.shape[-1], axis=-1)
    result = np.empty((x.shape[0], *sliding.results, outside), dtype=x.dtype)
    for block in blocks(result.shape[:1], max(_BLOCK // 4 // math.prod(result.shape[1:]), 1)):
        part, target = x[block], result[block]
        cuts = sliding.cuts()
        np.multiply(part[next(cuts)], weights[0], out=target)
        product = np.empty_like(target)
        for cut, weight in zip(cuts, weights[1:], strict=True):
            target += np.multiply(part[cut], weight, out=product)
    return result
