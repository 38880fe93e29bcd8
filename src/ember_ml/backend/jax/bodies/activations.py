"""Activations on JAX, each one program; half precision is computed in float32."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from ember_ml.backend.common.axes import axes_of
from ember_ml.backend.jax.half_precision import static_in_float32

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


_softmax = static_in_float32(1)(jax.nn.softmax)
_log_softmax = static_in_float32(1)(jax.nn.log_softmax)


def softmax(x: jax.Array, axis: Any) -> jax.Array:
    return _softmax(x, axes_of(axis, x.ndim))


def log_softmax(x: jax.Array, axis: Any) -> jax.Array:
    return _log_softmax(x, axes_of(axis, x.ndim))
