"""Compile the bodies of ops: one that is made of several of JAX's functions runs as one program, also in eager code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax

__all__ = ["hashable", "jitted", "static"]


def jitted(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile ``function`` of arrays once for each combination of shapes and dtypes."""
    return jax.jit(function, inline=True)


def hashable(axis: Any) -> Any:
    """Return ``axis``, which may be a list, as a constant of a compiled function."""
    return tuple(axis) if isinstance(axis, list) else axis


def static(*places: int) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Compile a function whose arguments at ``places`` are constants, which can be hashed."""
    return lambda function: jax.jit(function, static_argnums=places, inline=True)
