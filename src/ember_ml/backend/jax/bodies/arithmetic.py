"""Arithmetic on JAX."""

from __future__ import annotations

import jax
import jax.numpy as jnp

add = jax.jit(jnp.add)
subtract = jax.jit(jnp.subtract)
multiply = jax.jit(jnp.multiply)
divide = jax.jit(jnp.divide)
