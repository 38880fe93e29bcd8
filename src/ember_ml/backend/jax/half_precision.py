"""Compute half precision in float32, where JAX rounds in between."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from ember_ml.backend.contract import Body
from ember_ml.backend.jax.jitting import jitted
from ember_ml.core import dtypes as dt
from ember_ml.core.dtypes import EmberDType

__all__ = ["HALVES", "in_float32", "widen"]

HALVES = (jnp.dtype(jnp.float16), jnp.dtype(jnp.bfloat16))


def widen(x: jax.Array) -> jax.Array:
    """Cast half precision to float32."""
    return x.astype(jnp.float32) if x.dtype in HALVES else x


def in_float32(native: Callable[..., Any]) -> dict[EmberDType, Body]:
    """Return bodies for half precision that compute ``native`` of arrays in float32."""

    @jitted
    def body(*arrays: jax.Array) -> Any:
        return native(*(widen(x) for x in arrays)).astype(arrays[0].dtype)

    return dict.fromkeys(dt.HALVES, body)
