"""Arithmetic on JAX: native functions, and bodies where they deviate from the contract."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from ember_ml.backend import value_checks as checks
from ember_ml.backend.contract import ByDType
from ember_ml.backend.jax.bodies.indexing import readable
from ember_ml.backend.jax.half_precision import in_float32
from ember_ml.backend.jax.jitting import jitted, static
from ember_ml.core import dtypes as dt

# compiled, they take half as long per call as through the checks of jax.numpy
add = jitted(jnp.add)
subtract = jitted(jnp.subtract)
multiply = jitted(jnp.multiply)
square = jitted(jnp.square)
reciprocal = jitted(jnp.reciprocal)
negative = jitted(jnp.negative)
abs = jitted(jnp.abs)
maximum, minimum = jitted(jnp.maximum), jitted(jnp.minimum)
ceil, floor, trunc = jitted(jnp.ceil), jitted(jnp.floor), jitted(jnp.trunc)
fmax, fmin = jitted(jnp.fmax), jitted(jnp.fmin)


@jitted
def sign(x: jax.Array) -> jax.Array:
    return jnp.where(x == 0, 0, jnp.sign(x))  # JAX 0.10: -0 for -0


def positive(x: jax.Array) -> jax.Array:
    return x


@jitted
def divide(x: jax.Array, y: jax.Array) -> jax.Array:
    # JAX 0.10: multiplies by the reciprocal of what it broadcasts: loses the last bit, and all where that is subnormal
    if x.dtype.kind != "c" and y.shape != jnp.broadcast_shapes(x.shape, y.shape):
        y = jnp.where(jnp.isnan(x), jnp.nan, y.astype(x.dtype))  # a number comes with a dtype of its own
    return jnp.divide(x, y)


@jitted
def _integer_floor_divide(x: jax.Array, y: jax.Array) -> jax.Array:
    # JAX 0.10: -1 for a divisor of 0
    return jnp.where(y == 0, 0, jnp.floor_divide(x, jnp.where(y == 0, 1, y)))


@jitted
def _integer_mod(x: jax.Array, y: jax.Array) -> jax.Array:
    return jnp.mod(x, jnp.where(y == 0, 1, y))  # the remainder by 1, for 0, is 0


@jitted
def _integer_fmod(x: jax.Array, y: jax.Array) -> jax.Array:
    return lax.rem(*jnp.broadcast_arrays(x, jnp.where(y == 0, 1, y)))


@jitted
def _float_mod(x: jax.Array, y: jax.Array) -> jax.Array:
    rest = jnp.mod(x, y)
    return jnp.where(rest == 0, jnp.copysign(rest, y), rest)  # JAX 0.10: a zero has the sign of x


@jitted
def _float_floor_divide(x: jax.Array, y: jax.Array) -> jax.Array:
    """Divide what the exact remainder leaves."""
    # JAX 0.10: NaN for infinite quotients
    quotient = x / y
    whole = jnp.round((x - jnp.mod(x, y)) / y)
    whole = jnp.where(whole == 0, quotient * 0, whole)
    return jnp.where(jnp.isinf(x) | jnp.isinf(y) | (y == 0), quotient, whole)


_float_fmod = jitted(jnp.fmod)
_INTEGERS_DIVIDED = dict.fromkeys(dt.INTEGERS, _integer_floor_divide)
floor_divide = ByDType(_float_floor_divide, _INTEGERS_DIVIDED | in_float32(_float_floor_divide))
mod = ByDType(_float_mod, dict.fromkeys(dt.INTEGERS, _integer_mod) | in_float32(_float_mod))
fmod = ByDType(_float_fmod, dict.fromkeys(dt.INTEGERS, _integer_fmod) | in_float32(_float_fmod))


def _signed_power(x: jax.Array, y: jax.Array) -> jax.Array:
    values = readable(y) if checks.enabled else None
    if values is not None and values.size and x.size and values.min() < 0:
        raise ValueError("integers have no negative integer powers; cast to a float dtype first")
    return _integer_power(x, y)


@jitted
def _integer_power(x: jax.Array, y: jax.Array) -> jax.Array:
    return jnp.where(y < 0, 0, jnp.power(x, jnp.maximum(y, 0)))


@jitted
def _complex_power(x: jax.Array, y: jax.Array) -> jax.Array:
    return jnp.where(y == 0, 1, jnp.power(x, y))


power = ByDType(jitted(jnp.power), dict.fromkeys(dt.SIGNED, _signed_power) | dict.fromkeys(dt.COMPLEX, _complex_power))


@jitted
def clip(x: jax.Array, min: jax.Array | None, max: jax.Array | None) -> jax.Array:
    # chosen, not jnp.minimum: of two equal elements that gives each half of the gradient
    result = x if min is None else jnp.where((x < min) | jnp.isnan(min), min, x)
    return result if max is None else jnp.where((result > max) | jnp.isnan(max), max, result)


@static(1)
def round(x: jax.Array, decimals: int) -> jax.Array:
    if x.dtype.kind in "iu":
        return _round_integer(x, decimals)
    if x.dtype.kind == "c":
        return lax.complex(_round_float(x.real, decimals), _round_float(x.imag, decimals))
    return _round_float(x, decimals)


def _round_float(x: jax.Array, decimals: int) -> jax.Array:
    if not decimals:
        return jnp.round(x)
    wide = x.astype(jnp.float32) if x.dtype.itemsize < 4 else x
    unit = jnp.asarray(10.0 ** (decimals if decimals > 0 else -decimals), wide.dtype)
    rounded = jnp.round(wide * unit) / unit if decimals > 0 else jnp.round(wide / unit) * unit
    return rounded.astype(x.dtype)


def _round_integer(x: jax.Array, decimals: int) -> jax.Array:
    """Round to tens and higher powers of ten in 64-bit integers."""
    if decimals >= 0:
        return x
    if decimals < -18:
        return jnp.zeros_like(x)
    wide = x.astype(jnp.uint64 if x.dtype == jnp.uint64 else jnp.int64)
    unit = jnp.asarray(10**-decimals, wide.dtype)
    quotient = jnp.floor_divide(wide, unit)
    rest = wide - quotient * unit
    up = (rest > unit - rest) | ((rest == unit - rest) & (quotient % 2 == 1))
    return ((quotient + up.astype(wide.dtype)) * unit).astype(x.dtype)


@static(1, 2, 3)
def nan_to_num(x: jax.Array, nan: float, posinf: float | None, neginf: float | None) -> jax.Array:
    return jnp.nan_to_num(x, nan=nan, posinf=posinf, neginf=neginf) if x.dtype.kind not in "iub" else x


def _magnitude(x: jax.Array) -> jax.Array:
    """Return the absolute value as an unsigned integer, which holds that of the smallest one too."""
    return jnp.abs(x).astype(f"uint{x.dtype.itemsize * 8}") if x.dtype.kind == "i" else x


@jitted
def gcd(x: jax.Array, y: jax.Array) -> jax.Array:
    return _gcd(_magnitude(x), _magnitude(y)).astype(x.dtype)


def _gcd(a: jax.Array, b: jax.Array) -> jax.Array:
    """Return the greatest common divisors by Euclid's algorithm."""

    def step(pair: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        a, b = pair
        rest = lax.rem(a, jnp.where(b == 0, 1, b))
        return jnp.where(b == 0, a, b), jnp.where(b == 0, b, rest)

    a, b = jnp.broadcast_arrays(a, b)
    return lax.while_loop(lambda pair: jnp.any(pair[1] != 0), step, (a, b))[0]


@jitted
def lcm(x: jax.Array, y: jax.Array) -> jax.Array:
    a, b = _magnitude(x), _magnitude(y)
    divisor = _gcd(a, b)
    return (lax.div(jnp.broadcast_to(a, divisor.shape), jnp.where(divisor == 0, 1, divisor)) * b).astype(x.dtype)
