"""Bitwise ops on JAX."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from ember_ml.backend.jax.jitting import jitted

bitwise_and = jitted(jnp.bitwise_and)
bitwise_or = jitted(jnp.bitwise_or)
bitwise_xor = jitted(jnp.bitwise_xor)
bitwise_invert = jitted(jnp.bitwise_not)


# as unsigned numbers negative shifts are beyond the width too; XLA defines shifts beyond it
@jitted
def bitwise_left_shift(x: jax.Array, y: jax.Array) -> jax.Array:
    return lax.shift_left(*jnp.broadcast_arrays(x, y))


@jitted
def bitwise_right_shift(x: jax.Array, y: jax.Array) -> jax.Array:
    shift = lax.shift_right_arithmetic if x.dtype.kind == "i" else lax.shift_right_logical
    return shift(*jnp.broadcast_arrays(x, y))
