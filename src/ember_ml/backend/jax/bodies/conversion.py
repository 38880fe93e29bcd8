"""Conversion between dtypes, on JAX."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ember_ml.backend.jax.jitting import jitted, static


def copy(x: jax.Array) -> jax.Array:
    """Nothing can change an array: sharing it is as good as a copy."""
    return x


stop_gradient = jitted(lax.stop_gradient)


@static(1)
def view(x: jax.Array, dtype: np.dtype) -> jax.Array:
    # JAX 0.10: takes no view of bools
    x = x.astype(jnp.uint8) if x.dtype.kind == "b" else x
    return x.view(jnp.uint8) != 0 if dtype.kind == "b" else x.view(dtype)
