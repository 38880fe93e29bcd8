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
from ember_ml.backend.mlx.gradients import is_differentiating


def relu(x: mx.array) -> mx.array:
    return mx.maximum(x, 0)


_GELU_SCALE, _GELU_CUBE = 2 * math.sqrt(2 / math.pi), 0.044715


def _compute_power(x: mx.array) -> tuple[mx.array, mx.array]:
    """Return whether the sigmoid of ``x`` is a normal number, and ``exp(-x)``, which would be infinite elsewhere."""
    limit = -708 if x.dtype == mx.float64 else -88
    return x >= limit, exp_real(-mx.maximum(x, limit))


def _compute_sigmoids(x: mx.array) -> list[mx.array]:
    """Return the sigmoids of ``x`` and of ``-x``."""
    is_normal, power = _compute_power(x)
    result = 1 / (1 + power)
    return [is_normal * result, power * result]


_sigmoids: Any = mx.custom_function(_compute_sigmoids)


@_sigmoids.vjp
def _(x: mx.array, cotangents: Any, outputs: Any) -> mx.array:
    # by products of the results, which are finite to any order, where the square of the power overflows
    of_result, of_other = cotangents
    result, other = outputs
    return (of_result - of_other) * result * other


def _sigmoid(x: mx.array) -> mx.array:
    if is_differentiating():
        return _sigmoids(x)[0]
    is_normal, power = _compute_power(x)
    return is_normal / (1 + power)


def _steepen(x: mx.array) -> mx.array:
    """Return what GELU's approximation takes the sigmoid of."""
    near = mx.clip(x, -30, 30)  # beyond, the sigmoid is 0 or 1; and the cube would overflow
    return _GELU_SCALE * (near + _GELU_CUBE * (near * near * near))


def _compute_gelu(x: mx.array) -> list[mx.array]:
    """Return GELU by its approximation, ``x * sigmoid(z)``, and the sigmoids of ``z`` and of ``-z``."""
    result, other = _compute_sigmoids(_steepen(x))
    return [x * result, result, other]


_gelus: Any = mx.custom_function(_compute_gelu)


@_gelus.vjp
def _(x: mx.array, cotangents: Any, outputs: Any) -> mx.array:
    of_result, of_sigmoid, of_other = cotangents
    _, sigmoid, other = outputs
    near = mx.clip(x, -30, 30)
    slope = _GELU_SCALE * (1 + 3 * _GELU_CUBE * (near * near))
    return of_result * sigmoid + (of_result * near + (of_sigmoid - of_other)) * (slope * sigmoid * other)


def _gelu(x: mx.array, approximate: bool) -> mx.array:
    if not approximate:
        return exact_gelu(x)
    return _gelus(x)[0] if is_differentiating() else x * _sigmoid(_steepen(x))


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
