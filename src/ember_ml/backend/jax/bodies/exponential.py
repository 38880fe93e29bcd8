"""Exponentials, logarithms and roots on JAX."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from ember_ml.backend.contract import ByDType
from ember_ml.backend.jax.bodies.float_bits import power_of_two
from ember_ml.backend.jax.half_precision import in_float32
from ember_ml.backend.jax.jitting import jitted

exp = jitted(jnp.exp)
expm1 = jitted(jnp.expm1)
log = jitted(jnp.log)
log2 = ByDType(jitted(jnp.log2), in_float32(jnp.log2))
log10 = ByDType(jitted(jnp.log10), in_float32(jnp.log10))
log1p = jitted(jnp.log1p)
sqrt = jitted(jnp.sqrt)
rsqrt = jitted(lax.rsqrt)
cbrt = jitted(jnp.cbrt)
logaddexp = ByDType(jitted(jnp.logaddexp), in_float32(jnp.logaddexp))
logaddexp2 = ByDType(jitted(jnp.logaddexp2), in_float32(jnp.logaddexp2))


@jitted
def _exp2(x: jax.Array) -> jax.Array:
    """Return 2**x from the integer part and the remainder."""
    # JAX 0.10: rounds x * log(2), and the exponential magnifies the error
    least, most = (-1022, 1023) if x.dtype == jnp.float64 else (-126, 127)  # for which 2**k is a normal number
    places = lax.stop_gradient(jnp.round(jnp.clip(x, least, most)))
    return jnp.exp((x - places) * 0.6931471805599453) * power_of_two(places, x.dtype)


exp2 = ByDType(_exp2, in_float32(_exp2))
