"""Norms, on JAX: scaled, so that powers neither overflow nor vanish."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
from jax import lax

from ember_ml.backend.jax.half_precision import narrow_as, widen
from ember_ml.backend.jax.jitting import jitted, static
from ember_ml.typing import AxisLike

_FEW = 1024  # elements, for which double precision, in which no square overflows, takes no longer


def vector_norm(x: jax.Array, axis: AxisLike | None, keepdims: bool, ord: float) -> jax.Array:
    if axis is None and keepdims is False and ord == 2:  # the usual case, for which constants take longer to compare
        return _length(x)
    return _vector_norm(x, tuple(axis) if type(axis) is list else axis, keepdims, ord)


_length = jitted(lambda x: _vector_norm(x, None, False, 2))


@static(1, 2, 3)
def _vector_norm(x: jax.Array, axis: AxisLike | None, keepdims: bool, ord: float) -> jax.Array:
    if not isinstance(ord, int | float):
        raise ValueError(f"the order of a vector norm is a number, not {ord!r}")
    return narrow_as(_wide_norm(widen(x), axis, keepdims, ord), x)


def _wide_norm(x: jax.Array, axis: AxisLike | None, keepdims: bool, ord: float) -> jax.Array:
    size = jnp.abs(x)
    if math.isinf(ord):
        return (jnp.max if ord > 0 else jnp.min)(size, axis, keepdims=keepdims)
    if ord == 0:
        return jnp.sum(size != 0, axis, dtype=size.dtype, keepdims=keepdims)
    if ord == 1:
        return jnp.sum(size, axis, keepdims=keepdims)
    if ord < 0:
        return jnp.sum(size**ord, axis, keepdims=keepdims) ** (1 / ord)
    if ord != 2:
        return _scaled_norm(size, axis, keepdims, ord)
    if size.size <= _FEW and size.dtype == jnp.float32:
        return jnp.sqrt(jnp.sum(jnp.square(size.astype(jnp.float64)), axis, keepdims=keepdims)).astype(jnp.float32)
    total = jnp.sum(jnp.square(size), axis, keepdims=keepdims)
    limits = jnp.finfo(total.dtype)
    least = float(limits.tiny) * max(size.size, 1) / float(limits.eps) ** 2  # below, vanishing squares would be missed
    is_exact = jnp.all((total >= least) & jnp.isfinite(total))
    # a second pass, which most arrays do not need; it takes x, since the sizes would be written to memory for it
    return lax.cond(
        is_exact, lambda total, _: jnp.sqrt(total), lambda _, x: _scaled_norm(jnp.abs(x), axis, keepdims, ord), total, x
    )


def _scaled_norm(size: jax.Array, axis: AxisLike | None, keepdims: bool, ord: float) -> jax.Array:
    scale = lax.stop_gradient(jnp.max(size, axis, keepdims=True, initial=0))
    scale = jnp.where((scale > 0) & jnp.isfinite(scale), scale, 1)
    if ord == 2:
        scaled = jnp.sqrt(jnp.sum(jnp.square(size / scale), axis, keepdims=keepdims))
    else:
        scaled = jnp.sum((size / scale) ** ord, axis, keepdims=keepdims) ** (1 / ord)
    return scaled * scale.reshape(scaled.shape)
