"""Circular and hyperbolic functions on MLX."""

from __future__ import annotations

import math

import mlx.core as mx

from ember_ml.backend.common import special as formulas
from ember_ml.backend.contract import ByDType
from ember_ml.backend.mlx.bodies.complex import of_parts
from ember_ml.backend.mlx.half_precision import in_float32
from ember_ml.backend.mlx.vmap_rules import not_equal
from ember_ml.core import dtypes as dt

tan = mx.tan
arcsin = mx.arcsin
arccos = mx.arccos
arctan = mx.arctan
arctan2 = mx.arctan2
sinh = mx.sinh
cosh = mx.cosh
arcsinh = mx.arcsinh
arccosh = mx.arccosh
arctanh = mx.arctanh


def _sin_double(x: mx.array) -> mx.array:
    """Return the sine from the tangent of half the angle; the smallest floats are their own sine."""
    # MLX 0.32: sin and cos compute float64 in float32, tan does not (mlx#3047)
    t = mx.tan(x / 2)
    return mx.where(mx.abs(x) < 1e-8, x, 2 * t / (1 + t * t))


def _cos_double(x: mx.array) -> mx.array:
    """Return the cosine: its magnitude from the tangent, its sign from tan(x) * tan(x/2)."""
    t = mx.tan(x)
    magnitude = mx.rsqrt(1 + t * t)
    is_negative = not_equal(t < 0, mx.tan(x / 2) < 0)
    return mx.where(mx.logical_and(is_negative, mx.abs(x) > 1e-8), -magnitude, magnitude)


sin = ByDType(mx.sin, {dt.float64: _sin_double})
cos = ByDType(mx.cos, {dt.float64: _cos_double})


def sin_real(x: mx.array) -> mx.array:
    """Return the sine of float32 or float64."""
    return _sin_double(x) if x.dtype == mx.float64 else mx.sin(x)


def _complex_tanh(x: mx.array) -> mx.array:
    return formulas.complex_tanh(mx, of_parts, x)


# MLX 0.32: at infinities the imaginary zero has the sign of sin(2b); in the standard, that of b
tanh = ByDType(mx.tanh, {dt.complex64: _complex_tanh})


def _hypot(x: mx.array, y: mx.array) -> mx.array:
    scale = mx.stop_gradient(mx.maximum(mx.abs(x), mx.abs(y)))
    scale = mx.where(scale == 0, mx.ones_like(scale), scale)
    squares = mx.square(x / scale) + mx.square(y / scale)
    is_zero = squares == 0  # there the gradient of the root is infinite
    size = mx.where(is_zero, 0, scale * mx.sqrt(mx.where(is_zero, 1, squares)))
    return mx.where(mx.logical_or(mx.isinf(x), mx.isinf(y)), math.inf, size)


hypot = ByDType(_hypot, in_float32(_hypot))


def _deg2rad(x: mx.array) -> mx.array:
    return x * (math.pi / 180)


def _rad2deg(x: mx.array) -> mx.array:
    return x * (180 / math.pi)


deg2rad = ByDType(_deg2rad, in_float32(_deg2rad))
rad2deg = ByDType(_rad2deg, in_float32(_rad2deg))


def _sinc(x: mx.array) -> mx.array:
    return formulas.sinc(mx, sin_real, x)


sinc = ByDType(_sinc, in_float32(_sinc))
