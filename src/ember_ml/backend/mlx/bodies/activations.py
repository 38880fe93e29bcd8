"""Activations on MLX, by the accurate exponential."""

# MLX 0.32: the exponential in mx.sigmoid and mx.softmax has relative errors of up to 4e-6 (mlx#1341)

from __future__ import annotations

import math
from typing import Any

import mlx.core as mx

from ember_ml.backend.common.axes import axes_of
from ember_ml.backend.mlx.bodies.exponential import exp_real
from ember_ml.backend.mlx.bodies.reductions import in_float32, total
from ember_ml.backend.mlx.gelu import exact_gelu


def relu(x: mx.array) -> mx.array:
    return mx.maximum(x, 0)


def _sigmoid(x: mx.array) -> mx.array:
    # below the limit the result is subnormal, and the infinite power would make the gradient NaN
    limit = -708 if x.dtype == mx.float64 else -88
    return (x >= limit) / (1 + exp_real(-mx.maximum(x, limit)))


def _gelu(x: mx.array, approximate: bool) -> mx.array:
    if not approximate:
        return exact_gelu(x)
    near = mx.clip(x, -30, 30)  # beyond, the sigmoid is 0 or 1; and the cube would overflow
    return x * _sigmoid(2 * math.sqrt(2 / math.pi) * (near + 0.044715 * (near * near * near)))


def _below_largest(x: mx.array, axis: tuple[int, ...]) -> mx.array:
    return x - mx.stop_gradient(mx.max(x, axis, True)) if x.size else x


def _softmax(x: mx.array, axis: Any) -> mx.array:
    axis = axes_of(axis, x.ndim)
    powers = exp_real(_below_largest(x, axis))
    return powers / total(powers, axis, True)


def _log_softmax(x: mx.array, axis: Any) -> mx.array:
    axis = axes_of(axis, x.ndim)
    below = _below_largest(x, axis)
    return below - mx.log(total(exp_real(below), axis, True))


sigmoid = in_float32(_sigmoid)
gelu = in_float32(_gelu)
softmax = in_float32(_softmax)
log_softmax = in_float32(_log_softmax)
