"""Recurrent layers as one program, whose loop over the positions is ``lax.scan``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from ember_ml.backend.common.recurrent import cells_of, run_layers
from ember_ml.backend.jax.bodies.products import matmul
from ember_ml.backend.jax.jitting import static

__all__ = ["pullback", "run"]

pullback = None
_CELLS = cells_of(jnp, jax.nn.sigmoid, jax.nn.relu)


def run(
    kind: str,
    x: jax.Array,
    state: Sequence[jax.Array],
    weights: Sequence[jax.Array],
    has_bias: bool,
    layers: int,
    bidirectional: bool,
) -> tuple[jax.Array, Sequence[jax.Array]] | None:
    """Return the results and the last state, or None where the loop in Python must compute them."""
    if any(t.dtype != x.dtype for t in (*state, *weights)) or x.dtype not in (jnp.float32, jnp.float64):
        return None
    return _run(kind, x, list(state), list(weights), has_bias, 2 if bidirectional else 1)


@static(0, 4, 5)
def _run(
    kind: str, x: jax.Array, state: list[jax.Array], weights: list[jax.Array], has_bias: bool, directions: int
) -> tuple[jax.Array, list[jax.Array]]:
    return run_layers(jnp, matmul, _scan, _CELLS, kind, x, state, weights, has_bias, directions)


def _scan(step: Callable[..., Any], carry: Any, parts: jax.Array, is_reversed: bool) -> Any:
    return lax.scan(step, carry, parts, reverse=is_reversed)
