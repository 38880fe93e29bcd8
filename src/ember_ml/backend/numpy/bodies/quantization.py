"""Packed weights, a block of rows at a time, on NumPy."""

from __future__ import annotations

import numpy as np

from ember_ml.backend.common.quantized import check_quantized, check_quantized_linear

_ROWS = 128
"""Rows that are dequantized at a time: they stay in the cache until they are multiplied."""
_PRECISE = (np.dtype(np.float32), np.dtype(np.float64))


def dequantize(weight: np.ndarray, scales: np.ndarray, biases: np.ndarray, bits: int, group_size: int) -> np.ndarray:
    check_quantized(weight, scales, biases, bits, group_size)
    octets = np.ascontiguousarray(weight).view(np.uint8)
    if bits == 8:
        numbers = octets.astype(scales.dtype)
    else:
        numbers = np.empty((*octets.shape, 2), scales.dtype)
        numbers[..., 0] = octets & 15
        numbers[..., 1] = octets >> 4
    numbers = numbers.reshape(*scales.shape, group_size)
    numbers *= scales[..., np.newaxis]
    numbers += biases[..., np.newaxis]
    return numbers.reshape(*scales.shape[:-1], scales.shape[-1] * group_size)


def quantized_linear(
    x: np.ndarray, weight: np.ndarray, scales: np.ndarray, biases: np.ndarray, bits: int, group_size: int
) -> np.ndarray:
    check_quantized_linear(x, weight, scales, biases, bits, group_size)
    wide = x.dtype if x.dtype in _PRECISE else np.dtype(np.float32)  # NumPy adds up half precision in half precision
    given = x.astype(wide, copy=False)
    result = np.empty((*x.shape[:-1], len(weight)), wide)
    for first in range(0, len(weight), _ROWS):
        rows = slice(first, first + _ROWS)
        block = dequantize(weight[rows], scales[rows].astype(wide), biases[rows].astype(wide), bits, group_size)
        result[..., rows] = given @ block.T
    return result.astype(x.dtype, copy=False)
