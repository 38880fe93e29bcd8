"""Arithmetic on MLX: native functions, and bodies where they deviate from the contract."""

from __future__ import annotations

import operator

import mlx.core as mx

from ember_ml.backend import value_checks as checks
from ember_ml.backend.contract import ByDType
from ember_ml.backend.mlx.bodies.complex import of_parts
from ember_ml.backend.mlx.bodies.float_bits import copysign
from ember_ml.backend.mlx.empty_reductions import any_along
from ember_ml.backend.mlx.half_precision import in_float32
from ember_ml.backend.mlx.vmap_rules import not_equal
from ember_ml.core import dtypes as dt

# operators compute the same as functions, with less overhead per call
add = operator.add
subtract = operator.sub
multiply = operator.mul
divide = operator.truediv
square = mx.square
reciprocal = mx.reciprocal
negative = mx.negative
abs = mx.abs
maximum = mx.maximum
minimum = mx.minimum
ceil = mx.ceil
floor = mx.floor
trunc = mx.trunc


def positive(x: mx.array) -> mx.array:
    return x


def _float_sign(x: mx.array) -> mx.array:
    return mx.where(mx.isnan(x), x, mx.sign(x))  # MLX 0.32: 0 for NaN


def _complex_sign(x: mx.array) -> mx.array:
    # MLX 0.32: -0 for -0; adding 0 makes it 0. The square of a NaN is NaN in both parts; a constant does not compile
    return mx.where(mx.isnan(x), x * x, mx.sign(x) + 0)


sign = ByDType(mx.sign, dict.fromkeys(dt.FLOATS, _float_sign) | {dt.complex64: _complex_sign})


def _safe(y: mx.array) -> mx.array:
    """Replace divisors of 0 and -1 by 1."""
    # MLX 0.32: dividing the smallest integer by -1 ends the process
    odd = mx.logical_or(y == 0, y == -1) if mx.issubdtype(y.dtype, mx.signedinteger) else y == 0
    return mx.where(odd, mx.ones_like(y), y)


def _integer_floor_divide(x: mx.array, y: mx.array) -> mx.array:
    quotient = mx.floor_divide(x, _safe(y))
    if mx.issubdtype(y.dtype, mx.signedinteger):
        quotient = mx.where(y == -1, -x, quotient)
    return mx.where(y == 0, mx.zeros_like(y), quotient)


def _integer_mod(x: mx.array, y: mx.array) -> mx.array:
    return mx.remainder(x, _safe(y))  # the remainder by 1, for 0 and -1, is 0


def _integer_fmod(x: mx.array, y: mx.array) -> mx.array:
    rest = _integer_mod(x, y)
    opposite = not_equal(x < 0, y < 0)
    return mx.where(mx.logical_and(rest != 0, opposite), rest - y, rest)


def _float_mod(x: mx.array, y: mx.array) -> mx.array:
    rest = mx.remainder(x, y)
    signed = copysign(mx.zeros_like(rest), mx.broadcast_to(y, rest.shape))
    return mx.where(rest == 0, signed, rest)  # MLX 0.32: a zero has the sign of x


def _float_floor_divide(x: mx.array, y: mx.array) -> mx.array:
    """Divide what the exact remainder leaves."""
    # MLX 0.32: floors the rounded quotient, which may already be the next integer
    quotient = x / y
    whole = mx.round((x - mx.remainder(x, y)) / y)
    whole = mx.where(whole == 0, quotient * 0, whole)
    is_special = mx.logical_or(mx.logical_or(mx.isinf(x), mx.isinf(y)), y == 0)
    return mx.where(is_special, quotient, whole)


def _float_fmod(x: mx.array, y: mx.array) -> mx.array:
    rest = mx.remainder(mx.abs(x), mx.abs(y))
    return copysign(rest, mx.broadcast_to(x, rest.shape))


_INTEGERS_DIVIDED = dict.fromkeys(dt.INTEGERS, _integer_floor_divide)
floor_divide = ByDType(_float_floor_divide, _INTEGERS_DIVIDED | in_float32(_float_floor_divide))
mod = ByDType(_float_mod, dict.fromkeys(dt.INTEGERS, _integer_mod) | in_float32(_float_mod))
fmod = ByDType(_float_fmod, dict.fromkeys(dt.INTEGERS, _integer_fmod) | in_float32(_float_fmod))


def _has_negative(y: mx.array) -> bool:
    try:
        return bool(any_along(y < 0).item())
    except ValueError:  # y is traced
        return False


def _integer_power(x: mx.array, y: mx.array) -> mx.array:
    if checks.enabled and x.size and _has_negative(y):
        raise ValueError("integers have no negative integer powers; cast to a float dtype first")
    return mx.where(y < 0, mx.zeros_like(y), mx.power(x, mx.maximum(y, 0)))


def _complex_power(x: mx.array, y: mx.array) -> mx.array:
    # MLX 0.32: NaN for the complex 0 to the power of 0
    return mx.power(mx.where(mx.logical_and(x == 0, y == 0), mx.ones_like(x), x), y)


power = ByDType(
    mx.power, dict.fromkeys(dt.SIGNED, _integer_power) | in_float32(mx.power) | {dt.complex64: _complex_power}
)


def fmax(x: mx.array, y: mx.array) -> mx.array:
    return mx.where(mx.isnan(x), y, mx.where(mx.isnan(y), x, mx.maximum(x, y)))


def fmin(x: mx.array, y: mx.array) -> mx.array:
    return mx.where(mx.isnan(x), y, mx.where(mx.isnan(y), x, mx.minimum(x, y)))


def clip(x: mx.array, min: mx.array | None, max: mx.array | None) -> mx.array:
    # MLX 0.32: refuses two missing limits
    result = x if min is None else mx.maximum(x, min)
    return result if max is None else mx.minimum(result, max)


def _round_integer(x: mx.array, decimals: int) -> mx.array:
    """Round to tens and higher powers of ten in 64-bit integers."""
    # MLX 0.32: computes in float32
    if decimals >= 0:
        return x
    if decimals < -18:
        return mx.zeros_like(x)
    wide = x.astype(mx.uint64 if x.dtype == mx.uint64 else mx.int64)
    unit = mx.array(10**-decimals, dtype=wide.dtype)
    quotient = mx.floor_divide(wide, unit)
    rest = wide - quotient * unit
    up = mx.logical_or(rest > unit - rest, mx.logical_and(rest == unit - rest, quotient % 2 == 1))
    return ((quotient + up.astype(wide.dtype)) * unit).astype(x.dtype)


def _round_complex(x: mx.array, decimals: int) -> mx.array:
    return of_parts(mx.round(mx.real(x), decimals), mx.round(mx.imag(x), decimals))


def _round_float64(x: mx.array, decimals: int) -> mx.array:
    # MLX 0.32: the power of ten is a float32
    unit = mx.array(10.0 ** (decimals if decimals > 0 else -decimals), dtype=x.dtype)
    return mx.round(x * unit) / unit if decimals > 0 else mx.round(x / unit) * unit


round = ByDType(
    mx.round,
    dict.fromkeys(dt.INTEGERS, _round_integer)
    | {dt.complex64: _round_complex, dt.float64: _round_float64}
    | in_float32(mx.round),
)


def nan_to_num(x: mx.array, nan: float, posinf: float | None, neginf: float | None) -> mx.array:
    if x.dtype == mx.complex64:
        return of_parts(nan_to_num(mx.real(x), nan, posinf, neginf), nan_to_num(mx.imag(x), nan, posinf, neginf))
    if not mx.issubdtype(x.dtype, mx.floating):
        return x
    largest = mx.finfo(x.dtype).max
    ends = (largest if posinf is None else posinf, -largest if neginf is None else neginf)
    high, low = (mx.array(end, dtype=x.dtype) for end in ends)
    result = mx.where(mx.isnan(x), mx.array(nan, dtype=x.dtype), x)
    return mx.where(mx.isposinf(x), high, mx.where(mx.isneginf(x), low, result))


_UNSIGNED = {mx.int8: mx.uint8, mx.int16: mx.uint16, mx.int32: mx.uint32, mx.int64: mx.uint64}


def _magnitude(x: mx.array) -> mx.array:
    """Return the absolute value as an unsigned integer, which holds that of the smallest one too."""
    unsigned = _UNSIGNED.get(x.dtype)
    return x if unsigned is None else mx.abs(x).astype(unsigned)


def _gcd(a: mx.array, b: mx.array) -> mx.array:
    a, b = mx.broadcast_arrays(a, b)
    for _ in range(3 * a.dtype.size * 8 // 2):  # Euclid's algorithm needs fewer steps than 1.5 per bit
        rest = mx.remainder(a, mx.where(b == 0, mx.ones_like(b), b))
        a, b = mx.where(b == 0, a, b), mx.where(b == 0, b, rest)
    return a


def gcd(x: mx.array, y: mx.array) -> mx.array:
    return _gcd(_magnitude(x), _magnitude(y)).astype(x.dtype)


def lcm(x: mx.array, y: mx.array) -> mx.array:
    a, b = _magnitude(x), _magnitude(y)
    divisor = _gcd(a, b)
    return (mx.floor_divide(a, mx.where(divisor == 0, mx.ones_like(divisor), divisor)) * b).astype(x.dtype)
