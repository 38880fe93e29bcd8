"""Exponentials, logarithms and roots on JAX."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ember_ml.backend.contract import ByDType
from ember_ml.backend.jax.bodies.float_bits import power_of_two
from ember_ml.backend.jax.half_precision import in_float32
from ember_ml.backend.jax.jitting import jitted
from ember_ml.core import dtypes as dt

exp = jitted(jnp.exp)
expm1 = jitted(jnp.expm1)
log = jitted(jnp.log)
log1p = jitted(jnp.log1p)
sqrt = jitted(jnp.sqrt)
rsqrt = jitted(lax.rsqrt)
logaddexp = ByDType(jitted(jnp.logaddexp), in_float32(jnp.logaddexp))
logaddexp2 = ByDType(jitted(jnp.logaddexp2), in_float32(jnp.logaddexp2))


@jitted
def _cbrt(x: jax.Array) -> jax.Array:
    y = jnp.cbrt(x)  # JAX 0.10: errs by 1e-14 in float64 where XLA optimizes little; one step of Newton's method
    step = (y - x / (y * y)) / 3
    return y - lax.stop_gradient(jnp.where(jnp.isfinite(step), step, 0))


cbrt = ByDType(_cbrt, in_float32(_cbrt))


def _logarithm(native: Callable[..., jax.Array], base: int, least: int, most: int) -> ByDType:
    """Return a body by ``native``, and exactly for the powers of ``base`` from ``least`` to ``most`` in float64."""
    # JAX 0.10: divides by the logarithm of the base, so that some powers have one that is not whole
    powers = np.array([float(base) ** place if base == 2 else float(f"1e{place}") for place in range(least, most + 1)])

    @jitted
    def body(x: jax.Array) -> jax.Array:
        result = native(x)
        nearest = lax.stop_gradient(jnp.round(result))
        with np.errstate(over="ignore"):
            known = jnp.asarray(powers.astype(x.dtype))
        power = known[jnp.clip(jnp.nan_to_num(nearest), least, most).astype(jnp.int32) - least]
        return result + lax.stop_gradient(jnp.where((x == power) & jnp.isfinite(result), nearest - result, 0))

    return ByDType(body, dict.fromkeys(dt.COMPLEX, jitted(native)) | in_float32(native))


log2 = _logarithm(jnp.log2, 2, -1022, 1023)
log10 = _logarithm(jnp.log10, 10, -307, 308)


@jitted
def _exp2(x: jax.Array) -> jax.Array:
    """Return 2**x from the integer part and the remainder."""
    # JAX 0.10: rounds x * log(2), and the exponential magnifies the error
    least, most = (-1022, 1023) if x.dtype == jnp.float64 else (-126, 127)  # for which 2**k is a normal number
    places = lax.stop_gradient(jnp.round(jnp.clip(x, least, most)))
    return jnp.exp((x - places) * 0.6931471805599453) * power_of_two(places, x.dtype)


exp2 = ByDType(_exp2, in_float32(_exp2))
