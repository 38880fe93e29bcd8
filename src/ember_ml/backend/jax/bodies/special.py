"""Special functions on JAX."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax
from jax.scipy import special

from ember_ml.backend.contract import ByDType
from ember_ml.backend.jax.half_precision import in_float32
from ember_ml.backend.jax.jitting import jitted

erf = ByDType(jitted(lax.erf), in_float32(lax.erf))
erfc = ByDType(jitted(lax.erfc), in_float32(lax.erfc))
erfinv = ByDType(jitted(lax.erf_inv), in_float32(lax.erf_inv))
lgamma = ByDType(jitted(lax.lgamma), in_float32(lax.lgamma))


@jitted
def _digamma(x: jax.Array) -> jax.Array:
    return jnp.where(x == 0, -1 / x, lax.digamma(x))  # JAX 0.10: NaN for 0


digamma = ByDType(_digamma, in_float32(_digamma))
i0 = ByDType(jitted(special.i0), in_float32(special.i0))
