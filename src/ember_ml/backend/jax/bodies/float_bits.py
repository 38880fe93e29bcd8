"""Signs, neighbours and exponents of floats on JAX."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from ember_ml.backend.jax.jitting import jitted

signbit = jitted(jnp.signbit)
copysign = jitted(jnp.copysign)


@jitted
def nextafter(x: jax.Array, y: jax.Array) -> jax.Array:
    # JAX 0.10: fails in a gradient; the op has none, and says so itself
    return jnp.nextafter(lax.stop_gradient(x), lax.stop_gradient(y))


def is_true(x: jax.Array) -> jax.Array:
    """Return where elements are not 0; NaN is not."""
    if x.dtype.kind == "c":
        return is_true(x.real) | is_true(x.imag)
    if not jnp.issubdtype(x.dtype, jnp.floating):
        return x != 0
    # JAX 0.10 on the CPU: takes subnormal numbers for 0
    return jax.lax.stop_gradient(x).view(f"uint{8 * x.dtype.itemsize}") << 1 != 0


@jitted
def ldexp(x: jax.Array, y: jax.Array) -> jax.Array:
    """Multiply in four steps, since the power of 2 alone may be out of range when the product is not."""
    wide = x.astype(jnp.float32) if x.dtype.itemsize < 4 else x
    limit = 4000 if x.dtype == jnp.float64 else 480
    exponent = (
        jnp.minimum(y, limit).astype(jnp.int64) if y.dtype.kind == "u" else jnp.clip(y.astype(jnp.int64), -limit, limit)
    )
    quarter = jnp.trunc(exponent / 4).astype(jnp.int64)
    step = power_of_two(quarter, wide.dtype)
    return (wide * step * step * step * power_of_two(exponent - 3 * quarter, wide.dtype)).astype(x.dtype)


def power_of_two(exponent: jax.Array, dtype: jnp.dtype) -> jax.Array:
    """Return 2 to the power of integers from the bits of the result, which must be a normal float32 or float64."""
    bits, width, bias = (jnp.int64, 52, 1023) if dtype == jnp.float64 else (jnp.int32, 23, 127)
    return ((exponent.astype(bits) + bias) << width).view(dtype)
