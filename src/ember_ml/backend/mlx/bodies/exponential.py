"""Exponentials, logarithms and roots on MLX."""

from __future__ import annotations

import mlx.core as mx

from ember_ml.backend.common import special as formulas
from ember_ml.backend.contract import ByDType
from ember_ml.backend.mlx.bodies.complex import of_parts
from ember_ml.backend.mlx.bodies.float_bits import power_of_two, signbit
from ember_ml.backend.mlx.half_precision import in_float32
from ember_ml.core import dtypes as dt

log = mx.log
log2 = mx.log2
log10 = mx.log10
log1p = mx.log1p
sqrt = mx.sqrt
rsqrt = mx.rsqrt

_LOG2_E = 1.4426950408889634
# log(2) in two parts; the first has few bits: its products with small integers are exact
_LOG_2_FLOAT = (0.693359375, -2.12194440e-4)
_LOG_2_DOUBLE = (6.93147180369123816490e-01, 1.90821492927058770002e-10)


def _round_exponents(x: mx.array) -> mx.array:
    """Round ``x`` to integers k for which 2**k is a normal number; the remainder covers the rest."""
    least, most = (-1022, 1023) if x.dtype == mx.float64 else (-126, 127)
    return mx.stop_gradient(mx.round(mx.clip(x, least, most)))


def exp_real(x: mx.array, low: mx.array | None = None) -> mx.array:
    """Return the exponential of float32 or float64: 2**k * exp(r) with |r| <= log(2)/2.

    There ``mx.expm1`` is accurate, in float64 too, and three times as fast as ``mx.exp``. ``low`` is a small number to
    be added to ``x``, which has no digits for it.
    """
    # MLX 0.32: exp loses three bits in float32 (mlx#1341) and computes float64 in float32 (mlx#3047)
    upper, lower = _LOG_2_DOUBLE if x.dtype == mx.float64 else _LOG_2_FLOAT
    places = _round_exponents(x * _LOG2_E)
    rest = (x - places * upper) - places * lower
    rest = rest if low is None else rest + low
    return (mx.expm1(rest) + 1) * power_of_two(places, x.dtype)


exp = ByDType(mx.exp, {dt.float32: exp_real, dt.float64: exp_real} | in_float32(exp_real))


def _exp2(x: mx.array) -> mx.array:
    """Return 2**x from the integer part and the remainder: no rounding of x * log(2) is magnified."""
    places = _round_exponents(x)
    return (mx.expm1((x - places) * 0.6931471805599453) + 1) * power_of_two(places, x.dtype)


exp2 = ByDType(_exp2, in_float32(_exp2))


def _complex_expm1(x: mx.array) -> mx.array:
    return formulas.complex_expm1(mx, of_parts, exp_real, x)


expm1 = ByDType(mx.expm1, {dt.complex64: _complex_expm1})  # MLX 0.32: refuses complex


def _top_and_gap(x: mx.array, y: mx.array) -> tuple[mx.array, mx.array]:
    """Return the larger of both, and how far below it the other is: 0 for equal infinities."""
    is_less = x < y
    gap = mx.where(is_less, x - y, y - x)
    return mx.where(is_less, y, x), mx.where(mx.logical_and(mx.isinf(x), x == y), mx.zeros_like(gap), gap)


def _logaddexp(x: mx.array, y: mx.array) -> mx.array:
    top, gap = _top_and_gap(x, y)
    return top + mx.log1p(exp_real(gap))


def _logaddexp2(x: mx.array, y: mx.array) -> mx.array:
    top, gap = _top_and_gap(x, y)
    return top + mx.log1p(_exp2(gap)) * _LOG2_E


logaddexp = ByDType(_logaddexp, in_float32(_logaddexp))
logaddexp2 = ByDType(_logaddexp2, in_float32(_logaddexp2))


def _cbrt(x: mx.array) -> mx.array:
    return formulas.cube_root(mx, signbit, x)


cbrt = ByDType(_cbrt, in_float32(_cbrt))
