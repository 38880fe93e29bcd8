"""Real and imaginary parts, signs and bits of floats, on MLX."""

from __future__ import annotations

from typing import Any

import mlx.core as mx

from ember_ml.backend.contract import ByDType
from ember_ml.backend.mlx.vmap_rules import left_shift
from ember_ml.core import dtypes as dt
from ember_ml.errors import UnsupportedDType

_BITS = {mx.float16: mx.int16, mx.bfloat16: mx.int16, mx.float32: mx.int32, mx.float64: mx.int64}


def of_parts(real: mx.array, imag: mx.array) -> mx.array:
    """Join real and imaginary parts; ``real + 1j*imag`` would turn infinities into NaN."""
    result: Any = _view_as_complex(*mx.broadcast_arrays(real, imag))
    return result


@mx.custom_function
def _view_as_complex(real: mx.array, imag: mx.array) -> mx.array:
    return mx.squeeze(mx.contiguous(mx.stack([real, imag], axis=-1)).view(mx.complex64), -1)


@_view_as_complex.vjp
def _(parts: tuple[mx.array, mx.array], cotangent: mx.array, result: mx.array) -> tuple[mx.array, mx.array]:
    return mx.real(cotangent), mx.imag(cotangent)  # MLX 0.32: no gradient of a view


def _identity(x: mx.array) -> mx.array:
    return x


real = ByDType(_identity, {dt.complex64: mx.real})
imag = ByDType(mx.zeros_like, {dt.complex64: mx.imag})
conj = ByDType(_identity, {dt.complex64: mx.conj})


def polar(x: mx.array, y: mx.array) -> mx.array:
    if x.dtype == mx.float64:
        raise UnsupportedDType("MLX has no complex128, which polar of float64 needs; cast to float32")
    return of_parts(x * mx.cos(y), x * mx.sin(y))


def signbit(x: mx.array) -> mx.array:
    bits = _BITS.get(x.dtype)
    return mx.less(x if bits is None else mx.stop_gradient(x).view(bits), 0)


def copysign(x: mx.array, y: mx.array) -> mx.array:
    return mx.where(signbit(x) == signbit(y), x, -x)


def nextafter(x: mx.array, y: mx.array) -> mx.array:
    """Add or subtract 1 from the bits of the magnitude; from zero, return the smallest float with the sign of ``y``."""
    x, y = mx.broadcast_arrays(x, y)
    bits = mx.contiguous(x).view(_BITS[x.dtype])
    away = mx.where((y > x) == (x > 0), bits + 1, bits - 1).view(x.dtype)
    smallest = mx.ones_like(bits).view(x.dtype)
    step = mx.where(x == 0, mx.where(y > 0, smallest, -smallest), away)
    return mx.where(x == y, y, mx.where(mx.logical_or(mx.isnan(x), mx.isnan(y)), x + y, step))


def power_of_two(exponent: mx.array, dtype: mx.Dtype) -> mx.array:
    """Return 2 to the power of integers from the bits of the result, which must be a normal float32 or float64."""
    bits, width, bias = (mx.int64, 52, 1023) if dtype == mx.float64 else (mx.int32, 23, 127)
    return left_shift(exponent.astype(bits) + bias, width).view(dtype)


def _ldexp(x: mx.array, y: mx.array) -> mx.array:
    """Multiply in four steps, since the power of 2 alone may be out of range when the product is not."""
    limit = 4000 if x.dtype == mx.float64 else 480
    y = mx.minimum(y, limit) if y.dtype == mx.uint64 else y  # the largest would be negative in int64
    exponent = mx.clip(y.astype(mx.int64), -limit, limit)
    quarter = mx.trunc(exponent.astype(x.dtype) / 4).astype(mx.int64)
    step = power_of_two(quarter, x.dtype)
    return x * step * step * step * power_of_two(exponent - 3 * quarter, x.dtype)


def _ldexp_half(x: mx.array, y: mx.array) -> mx.array:
    return _ldexp(x.astype(mx.float32), y).astype(x.dtype)


ldexp = ByDType(_ldexp, dict.fromkeys(dt.HALVES, _ldexp_half))
