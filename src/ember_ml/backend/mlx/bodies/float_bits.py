"""Signs, neighbours and exponents of floats on MLX."""

from __future__ import annotations

import mlx.core as mx

from ember_ml.backend.contract import ByDType
from ember_ml.backend.mlx.vmap_rules import left_shift
from ember_ml.core import dtypes as dt

_BITS = {mx.float16: mx.int16, mx.bfloat16: mx.int16, mx.float32: mx.int32, mx.float64: mx.int64}


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
