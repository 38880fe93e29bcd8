"""Matrices made of tensors, on JAX."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from ember_ml.backend.common.shapes import as_shape
from ember_ml.backend.jax.jitting import static

tril = jnp.tril
triu = jnp.triu


@static(1)
def diag(x: jax.Array, k: int) -> jax.Array:
    if x.ndim == 1:  # JAX 0.10: ends the process at a shape that overflows
        as_shape((x.size + abs(k), x.size + abs(k)))
    return jnp.diag(x, k)
