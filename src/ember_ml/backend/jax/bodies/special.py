"""Special functions on JAX."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from ember_ml.backend.common import special as formulas
from ember_ml.backend.contract import ByDType
from ember_ml.backend.jax.half_precision import in_float32
from ember_ml.backend.jax.jitting import jitted

erf = ByDType(jitted(lax.erf), in_float32(lax.erf))
erfc = ByDType(jitted(lax.erfc), in_float32(lax.erfc))
erfinv = ByDType(jitted(lax.erf_inv), in_float32(lax.erf_inv))


@jitted
def _digamma(x: jax.Array) -> jax.Array:
    return jnp.where(x == 0, -1 / x, lax.digamma(x))  # JAX 0.10: NaN for 0


digamma = ByDType(_digamma, in_float32(_digamma))


@jax.custom_jvp
def _lgamma(x: jax.Array) -> jax.Array:
    # JAX 0.10: between negative integers 13 digits of float64 are right, and it is NaN for minus infinity
    return formulas.lgamma(jnp, jnp.sin, x, x.dtype == jnp.float32)


@_lgamma.defjvp
def _(primals: tuple[jax.Array], tangents: tuple[jax.Array]) -> tuple[jax.Array, jax.Array]:
    return _lgamma(*primals), tangents[0] * _digamma(*primals)


lgamma = ByDType(jitted(_lgamma), in_float32(_lgamma))


@jax.custom_jvp
def _i0(x: jax.Array) -> jax.Array:
    # JAX 0.10: 1.0000001 for 0 and NaN for infinity
    return formulas.bessel_i0(jnp, jnp.exp, x, x.dtype == jnp.float32)


@_i0.defjvp
def _(primals: tuple[jax.Array], tangents: tuple[jax.Array]) -> tuple[jax.Array, jax.Array]:
    return _i0(*primals), tangents[0] * formulas.bessel_i1(jnp, jnp.exp, *primals, primals[0].dtype == jnp.float32)


i0 = ByDType(jitted(_i0), in_float32(_i0))
