"""JAX's own call for each op that the benchmark compares."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

_SAME = "add multiply sin matmul mean reshape concatenate abs log"
calls = {name: getattr(jnp, name) for name in _SAME.split()}


def evaluate(x: Any) -> Any:
    return jax.block_until_ready(x)
