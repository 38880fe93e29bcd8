"""Comparison, logic and choice on JAX."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from ember_ml.backend.jax.bodies.float_bits import is_true
from ember_ml.backend.jax.half_precision import widen
from ember_ml.backend.jax.jitting import jitted, static

equal = jitted(jnp.equal)
not_equal = jitted(jnp.not_equal)
less = jitted(jnp.less)
less_equal = jitted(jnp.less_equal)
greater = jitted(jnp.greater)
greater_equal = jitted(jnp.greater_equal)
isfinite = jitted(jnp.isfinite)
isinf = jitted(jnp.isinf)
isnan = jitted(jnp.isnan)
isneginf = jitted(jnp.isneginf)
isposinf = jitted(jnp.isposinf)
isreal = jitted(jnp.isreal)
logical_and = jitted(lambda x, y: is_true(x) & is_true(y))
logical_or = jitted(lambda x, y: is_true(x) | is_true(y))
logical_xor = jitted(lambda x, y: is_true(x) ^ is_true(y))
logical_not = jitted(lambda x: ~is_true(x))
where = jitted(jnp.where)


@static(4)
def isclose(x: jax.Array, y: jax.Array, rtol: float, atol: float, equal_nan: bool) -> jax.Array:
    x, y = (part.astype(jnp.float64) if part.dtype.kind in "iub" else widen(part) for part in (x, y))
    near = (jnp.abs(x - y) <= atol + rtol * jnp.abs(y)) & jnp.isfinite(y)
    close = near | (x == y)
    return close | (jnp.isnan(x) & jnp.isnan(y)) if equal_nan else close


@static(4)
def allclose(x: jax.Array, y: jax.Array, rtol: float, atol: float, equal_nan: bool) -> jax.Array:
    return jnp.all(isclose(x, y, rtol, atol, equal_nan))


@static(2)
def isin(x: jax.Array, test_elements: jax.Array, invert: bool) -> jax.Array:
    """Search by bisection: the first element that is not less is equal, or none is."""
    if not test_elements.size:
        return jnp.full(x.shape, invert)
    if x.dtype.kind == "c":
        found = jnp.any(x[..., None] == test_elements.reshape(-1), -1)
    else:
        ordered = jnp.sort(test_elements.reshape(-1))
        found = ordered[jnp.minimum(jnp.searchsorted(ordered, x), ordered.size - 1)] == x
    return ~found if invert else found
