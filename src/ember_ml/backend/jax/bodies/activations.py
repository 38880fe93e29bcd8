"""Activations on JAX, each one program; half precision is computed in float32."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
from jax import lax

from ember_ml.backend.common.axes import axes_of
from ember_ml.backend.contract import Body
from ember_ml.backend.jax.half_precision import static_in_float32
from ember_ml.backend.jax.jitting import hashable

relu = jax.nn.relu
leaky_relu = static_in_float32(1)(jax.nn.leaky_relu)
elu = static_in_float32(1)(jax.nn.elu)
selu = static_in_float32()(jax.nn.selu)
_celu = static_in_float32(1)(jax.nn.celu)
sigmoid = static_in_float32()(jax.nn.sigmoid)
log_sigmoid = static_in_float32()(jax.nn.log_sigmoid)
silu = static_in_float32()(jax.nn.silu)
softplus = static_in_float32()(jax.nn.softplus)


def celu(x: jax.Array, alpha: float) -> jax.Array:
    if not alpha:
        raise ValueError("alpha is divided by, and is 0; relu is what the function comes to there")
    return _celu(x, alpha)


@static_in_float32(1)
def gelu(x: jax.Array, approximate: bool) -> jax.Array:
    if not approximate:
        return x * 0.5 * lax.erfc(x * -math.sqrt(0.5))
    near = jnp.clip(x, -30, 30)  # beyond, the sigmoid is 0 or 1; and the cube would overflow
    return x * jax.nn.sigmoid(2 * math.sqrt(2 / math.pi) * (near + 0.044715 * near**3))


def _over_axes(native: Body) -> Body:
    compiled = static_in_float32(1)(lambda x, axis: native(x, axes_of(axis, x.ndim)))
    return lambda x, axis: compiled(x, hashable(axis))


softmax = _over_axes(jax.nn.softmax)
log_softmax = _over_axes(jax.nn.log_softmax)
