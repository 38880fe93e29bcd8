"""JAX's own call for each op that the benchmark compares."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

calls = {
    "add": jnp.add,
    "multiply": jnp.multiply,
    "sin": jnp.sin,
    "matmul": jnp.matmul,
    "mean": jnp.mean,
    "reshape": jnp.reshape,
    "concatenate": jnp.concatenate,
    "abs": jnp.abs,
    "log": jnp.log,
}


def evaluate(x: Any) -> Any:
    return jax.block_until_ready(x)
