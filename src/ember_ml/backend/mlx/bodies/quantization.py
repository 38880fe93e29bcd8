"""Packed weights, by MLX's own functions, whose format it is."""

from __future__ import annotations

import mlx.core as mx

from ember_ml.backend.common.quantized import check_quantized, check_quantized_linear
from ember_ml.backend.mlx.graph_probe import is_vectorizing
from ember_ml.backend.mlx.vmap_rules import bitwise_and, right_shift


def dequantize(weight: mx.array, scales: mx.array, biases: mx.array, bits: int, group_size: int) -> mx.array:
    check_quantized(weight, scales, biases, bits, group_size)
    if scales.dtype == mx.float64:
        return _dequantize_wide(weight, scales, biases, bits, group_size)
    return mx.dequantize(weight, scales, biases, group_size=group_size, bits=bits)


def _dequantize_wide(weight: mx.array, scales: mx.array, biases: mx.array, bits: int, group_size: int) -> mx.array:
    # MLX 0.32: packed weights have no float64
    octets = mx.view(weight, mx.uint8)
    whole = octets if bits == 8 else mx.stack([bitwise_and(octets, 15), right_shift(octets, 4)], -1)
    groups = whole.reshape(*scales.shape, group_size).astype(mx.float64)
    return (groups * scales[..., None] + biases[..., None]).reshape(*scales.shape[:-1], -1)


def quantized_linear(
    x: mx.array, weight: mx.array, scales: mx.array, biases: mx.array, bits: int, group_size: int
) -> mx.array:
    check_quantized_linear(x, weight, scales, biases, bits, group_size)
    if x.dtype == mx.float64 or is_vectorizing():  # MLX 0.32: no vmap of quantized_matmul
        return x @ dequantize(weight, scales, biases, bits, group_size).T
    return mx.quantized_matmul(x, weight, scales, biases, transpose=True, group_size=group_size, bits=bits)
