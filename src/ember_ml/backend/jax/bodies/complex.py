"""Real and imaginary parts on JAX."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from ember_ml.backend.contract import ByDType
from ember_ml.backend.jax.jitting import jitted
from ember_ml.core import dtypes as dt


def _identity(x: jax.Array) -> jax.Array:
    return x


real = ByDType(_identity, dict.fromkeys(dt.COMPLEX, jitted(jnp.real)))
imag = jitted(jnp.imag)
conj = ByDType(_identity, dict.fromkeys(dt.COMPLEX, jitted(jnp.conj)))


@jitted
def polar(x: jax.Array, y: jax.Array) -> jax.Array:
    return lax.complex(*jnp.broadcast_arrays(x * jnp.cos(y), x * jnp.sin(y)))
