"""Matrices made of tensors, on JAX."""

from __future__ import annotations

import jax.numpy as jnp

tril = jnp.tril
triu = jnp.triu
diag = jnp.diag
