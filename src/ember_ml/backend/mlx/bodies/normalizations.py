"""Normalizations on MLX: fused kernels on the GPU, accurate sums on the CPU."""

# MLX 0.32: on the CPU the fused kernels add one element after the other (of a million elements, four digits are right),
# at half the speed (mlx#488)

from __future__ import annotations

from typing import Any

import mlx.core as mx

from ember_ml.backend.common.axes import axes_of, count_along
from ember_ml.backend.common.normalization import spread_shape
from ember_ml.backend.contract import ByDType
from ember_ml.backend.mlx.bodies.reductions import total
from ember_ml.backend.mlx.half_precision import in_float32


def has_kernel(x: mx.array, axes: tuple[int, ...]) -> bool:
    """Whether the fused kernels apply: on the GPU, along the last axis."""
    return mx.default_device() == mx.gpu and axes == (x.ndim - 1,) and x.size > 0


def _mean(x: mx.array, axes: tuple[int, ...]) -> mx.array:
    return total(x, axes, True) / count_along(x.shape, axes) if x.size else x


def _broadcast_parameter(parameter: mx.array | None, name: str, x: mx.array, axes: tuple[int, ...]) -> mx.array | None:
    return None if parameter is None else mx.reshape(parameter, spread_shape(parameter, name, x.shape, axes))


def _layer_normalization(
    x: mx.array, gamma: mx.array | None, beta: mx.array | None, axis: Any, epsilon: float
) -> mx.array:
    axes = axes_of(axis, x.ndim)
    weight, bias = _broadcast_parameter(gamma, "gamma", x, axes), _broadcast_parameter(beta, "beta", x, axes)
    if has_kernel(x, axes):
        return mx.fast.layer_norm(x, gamma, beta, epsilon)
    deviation = x - _mean(x, axes)
    result = deviation * mx.rsqrt(_mean(mx.square(deviation), axes) + epsilon)
    result = result if weight is None else result * weight
    return result if bias is None else result + bias


def _rms_normalization(x: mx.array, scale: mx.array | None, axis: Any, epsilon: float) -> mx.array:
    axes = axes_of(axis, x.ndim)
    weight = _broadcast_parameter(scale, "scale", x, axes)
    if has_kernel(x, axes):
        return mx.fast.rms_norm(x, scale, epsilon)
    result = x * mx.rsqrt(_mean(mx.square(x), axes) + epsilon)
    return result if weight is None else result * weight


layer_normalization = ByDType(_layer_normalization, in_float32(_layer_normalization))
rms_normalization = ByDType(_rms_normalization, in_float32(_rms_normalization))
