"""Compute GELU on MLX in few kernels, and its gradient from what the forward pass has computed."""

from __future__ import annotations

import math
from typing import Any

import mlx.core as mx

from ember_ml.backend.common.special import NORMAL_TAIL, NORMAL_TAIL_SCALE
from ember_ml.backend.mlx.bodies.exponential import exp_real
from ember_ml.backend.mlx.bodies.special import erfc

__all__ = ["exact_gelu"]

_DENSITY = 1 / math.sqrt(2 * math.pi)


def exact_gelu(x: mx.array) -> mx.array:
    """Return GELU of float32 or float64: in float32 within four last digits, small results below 0 too."""
    return _parts(x)[0]


def _compute(x: mx.array) -> list[mx.array]:
    """Return GELU, the probability that a normal variable is below ``x``, and ``exp(-x * x / 2)``."""
    probability, power = _in_single(x) if x.dtype == mx.float32 else _in_double(x)
    return [x * probability, probability, power]


_parts: Any = mx.custom_function(_compute)


@_parts.vjp
def _(x: mx.array, cotangents: Any, outputs: Any) -> mx.array:
    of_result, of_probability, of_power = cotangents
    _, probability, power = outputs
    near = mx.clip(x, -50, 50)  # infinity times a power of 0 would be NaN
    by_power = of_result * near * _DENSITY + (of_probability * _DENSITY - of_power * near)
    return of_result * probability + by_power * power


def _in_single(x: mx.array) -> tuple[mx.array, mx.array]:
    a = mx.minimum(mx.abs(x), 20.0)  # beyond, the tail is 0
    t = 1 / (a * NORMAL_TAIL_SCALE + 1)
    first, *middle, last = NORMAL_TAIL
    series = t * first
    for coefficient in middle:
        series = (series + coefficient) * t
    # a square that is exact, and the rest of a * a: its rounding error would show in the power
    head = mx.round(a * 32) * (1 / 32)
    power = exp_real(head * head * -0.5, (a - head) * (a + head) * -0.5)
    tail = (series + last) * t * power
    # 1 minus the tail above 0; mx.where takes twenty times as long
    return mx.abs((x > 0).astype(x.dtype) - tail), power


def _in_double(x: mx.array) -> tuple[mx.array, mx.array]:
    near = mx.clip(x, -50, 50)
    return erfc.native(x * -math.sqrt(0.5)) * 0.5, exp_real(near * near * -0.5)
