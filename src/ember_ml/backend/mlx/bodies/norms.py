"""Norms, on MLX."""

# MLX 0.32: the gradient of a power is NaN at 0; the bodies leave zeros out of the sums

from __future__ import annotations

import math

import mlx.core as mx

from ember_ml.backend.mlx.bodies import reductions
from ember_ml.backend.mlx.bodies.reductions import in_float32, total
from ember_ml.typing import AxisLike


def _vector_norm(x: mx.array, axis: AxisLike | None, keepdims: bool, ord: float) -> mx.array:
    if not isinstance(ord, int | float):
        raise ValueError(f"the order of a vector norm is a number, not {ord!r}")
    if ord == 0:
        real = mx.float32 if x.dtype == mx.complex64 else x.dtype
        return total((x != 0).astype(real), axis, keepdims)
    size = _root(_squares(x)) if x.dtype == mx.complex64 else mx.abs(x)
    if ord == 1:
        return total(size, axis, keepdims)
    if math.isinf(ord):
        return (reductions.max if ord > 0 else reductions.min)(size, axis, keepdims, None)
    if x.size and ord > 0:  # to avoid overflow and underflow
        scale = mx.stop_gradient(reductions.max(size, axis, True, None))
        scale = mx.where(mx.logical_and(scale > 0, mx.isfinite(scale)), scale, 1)
        # squares need no absolute values, whose second derivative is lost at 0
        result = _power_norm((x if ord == 2 else size) / scale, axis, keepdims, ord)
        return result * scale.reshape(result.shape)
    return _power_norm(x if ord == 2 else size, axis, keepdims, ord)


def _power_norm(size: mx.array, axis: AxisLike | None, keepdims: bool, ord: float) -> mx.array:
    if ord == 2:
        return _root(total(_squares(size), axis, keepdims))
    is_zero = size == 0
    powers = mx.where(is_zero, 0.0 if ord > 0 else math.inf, mx.power(mx.where(is_zero, 1, size), ord))
    whole = total(powers, axis, keepdims)
    is_end = mx.logical_or(whole == 0, mx.isinf(whole))
    ends = mx.stop_gradient(whole if ord > 0 else 1 / whole)
    return mx.where(is_end, ends, mx.power(mx.where(is_end, 1, whole), 1 / ord))


def _squares(x: mx.array) -> mx.array:
    return mx.square(mx.real(x)) + mx.square(mx.imag(x)) if x.dtype == mx.complex64 else mx.square(x)


def _root(x: mx.array) -> mx.array:
    is_zero = x == 0
    return mx.where(is_zero, 0, mx.sqrt(mx.where(is_zero, 1, x)))


vector_norm = in_float32(_vector_norm)
