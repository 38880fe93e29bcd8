"""Control flow inside functions that JAX traces, by the branches and loops of ``jax.lax``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
from jax import lax

from ember_ml.backend.jax.tracing import is_traced

__all__ = ["cond", "read", "scan", "while_loop"]


def read(x: jax.Array) -> Any:
    """Return the value of a 0-d array, or None while it is traced or vectorized."""
    return None if is_traced(x) else x.item()


def cond(pred: jax.Array, true_fn: Callable[[], Any], false_fn: Callable[[], Any]) -> Any:
    return lax.cond(pred, true_fn, false_fn)


def while_loop(
    test: Callable[[Sequence[jax.Array]], jax.Array],
    step: Callable[[Sequence[jax.Array]], list[jax.Array]],
    leaves: Sequence[jax.Array],
) -> Sequence[jax.Array]:
    return lax.while_loop(test, step, list(leaves))


def scan(
    step: Callable[[Sequence[jax.Array], Sequence[jax.Array]], tuple[list[jax.Array], Any]],
    leaves: Sequence[jax.Array],
    xs: Sequence[jax.Array],
    length: int,
    reverse: bool,
) -> tuple[Sequence[jax.Array], Any]:
    return lax.scan(step, list(leaves), list(xs), length, reverse)
