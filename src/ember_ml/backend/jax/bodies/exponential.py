"""Exponentials, logarithms and roots on JAX."""

from __future__ import annotations

import jax.numpy as jnp
from jax import lax

from ember_ml.backend.contract import ByDType
from ember_ml.backend.jax.half_precision import in_float32
from ember_ml.backend.jax.jitting import jitted

exp = jitted(jnp.exp)
exp2 = ByDType(jitted(jnp.exp2), in_float32(jnp.exp2))
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
