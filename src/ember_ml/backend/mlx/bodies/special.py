"""Special functions on MLX."""

# MLX 0.32: erf and erfinv compute float64 in float32 (mlx#3047)

from __future__ import annotations

import mlx.core as mx

from ember_ml.backend.common import special as formulas
from ember_ml.backend.contract import ByDType
from ember_ml.backend.mlx.bodies.exponential import exp_real
from ember_ml.backend.mlx.bodies.trigonometry import sin_real
from ember_ml.backend.mlx.half_precision import in_float32
from ember_ml.core import dtypes as dt


def _is_short(x: mx.array) -> bool:
    return x.dtype == mx.float32


def _erf(x: mx.array) -> mx.array:
    return formulas.erf(mx, exp_real, x, _is_short(x))


def _erfc(x: mx.array) -> mx.array:
    return formulas.erfc(mx, exp_real, x, _is_short(x))


def _erfinv_double(x: mx.array) -> mx.array:
    return formulas.erfinv(mx, exp_real, _erf, _erfc, x)


def _lgamma(x: mx.array) -> mx.array:
    return formulas.lgamma(mx, sin_real, x, _is_short(x))


def _digamma(x: mx.array) -> mx.array:
    return formulas.digamma(mx, x)


def _i0(x: mx.array) -> mx.array:
    return formulas.bessel_i0(mx, exp_real, x, _is_short(x))


erf = ByDType(_erf, in_float32(_erf))
erfc = ByDType(_erfc, in_float32(_erfc))
erfinv = ByDType(mx.erfinv, {dt.float64: _erfinv_double} | in_float32(mx.erfinv))
lgamma = ByDType(_lgamma, in_float32(_lgamma))
digamma = ByDType(_digamma, in_float32(_digamma))
i0 = ByDType(_i0, in_float32(_i0))
