"""Circular and hyperbolic functions on JAX."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from ember_ml.backend.common import special as formulas
from ember_ml.backend.contract import ByDType
from ember_ml.backend.jax.half_precision import in_float32
from ember_ml.backend.jax.jitting import jitted
from ember_ml.core import dtypes as dt

sin = jitted(jnp.sin)
cos = jitted(jnp.cos)
tan = jitted(jnp.tan)
arcsin = jitted(jnp.arcsin)
arccos = jitted(jnp.arccos)
arctan = jitted(jnp.arctan)
arctan2 = jitted(jnp.arctan2)
sinh = jitted(jnp.sinh)
cosh = jitted(jnp.cosh)
tanh = jitted(jnp.tanh)
arccosh = jitted(jnp.arccosh)
arctanh = jitted(jnp.arctanh)
hypot = ByDType(jitted(jnp.hypot), in_float32(jnp.hypot))
deg2rad = ByDType(jitted(jnp.deg2rad), in_float32(jnp.deg2rad))
rad2deg = ByDType(jitted(jnp.rad2deg), in_float32(jnp.rad2deg))


@jitted
def _complex_arcsinh(x: jax.Array) -> jax.Array:
    # JAX 0.10: on the imaginary axis, the real part of the result has the sign of 0 rather than of -0
    is_negative = jnp.signbit(x.real)
    positive = jnp.arcsinh(jnp.where(is_negative, -x, x))
    return jnp.where(is_negative, -positive, positive)


arcsinh = ByDType(jitted(jnp.arcsinh), dict.fromkeys(dt.COMPLEX, _complex_arcsinh))


@jitted
def _sinc(x: jax.Array) -> jax.Array:
    return formulas.sinc(jnp, jnp.sin, x)


sinc = ByDType(_sinc, in_float32(_sinc))
