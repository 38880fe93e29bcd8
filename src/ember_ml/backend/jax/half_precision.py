"""Compute half precision in float32, where JAX rounds in between."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import jax
import jax.numpy as jnp

from ember_ml.backend.contract import Body
from ember_ml.backend.jax.jitting import jitted, static
from ember_ml.core import dtypes as dt
from ember_ml.core.dtypes import EmberDType

__all__ = ["HALVES", "in_float32", "narrow_as", "static_in_float32", "widen"]

HALVES = (jnp.dtype(jnp.float16), jnp.dtype(jnp.bfloat16))


def widen(x: Any) -> Any:
    """Cast half precision to float32; anything else stays as it is."""
    return x.astype(jnp.float32) if isinstance(x, jax.Array) and x.dtype in HALVES else x


def narrow_as(result: Any, x: jax.Array) -> Any:
    """Return what was computed of ``widen(x)`` in the dtype of ``x``; float32 results of half precision are cast."""
    return jax.tree.map(
        lambda part: part.astype(x.dtype) if x.dtype in HALVES and part.dtype == jnp.float32 else part, result
    )


def in_float32(native: Callable[..., Any]) -> dict[EmberDType, Body]:
    """Return bodies for half precision that compute ``native`` of arrays in float32."""

    @jitted
    def body(*arrays: jax.Array) -> Any:
        return native(*(widen(x) for x in arrays)).astype(arrays[0].dtype)

    return dict.fromkeys(dt.HALVES, body)


def static_in_float32(*places: int) -> Callable[[Body], Body]:
    """Compile a body whose arguments at ``places`` are constants, and which computes half precision in float32."""

    def compiled(body: Body) -> Body:
        @wraps(body)
        def wide(x: jax.Array, *args: Any) -> Any:
            return narrow_as(body(widen(x), *map(widen, args)), x)

        return static(*places)(wide)

    return compiled
