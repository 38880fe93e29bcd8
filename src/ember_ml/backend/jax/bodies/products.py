"""Products of tensors, on JAX."""

# JAX 0.10: by default it multiplies float32 in fewer bits on TPUs, and on GPUs in TF32 where the process allows that;
# the contract's products have the precision of their dtype.

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jax import lax

from ember_ml.backend.common.einsum import read_subscripts
from ember_ml.backend.common.linalg import check_linear
from ember_ml.backend.jax.half_precision import HALVES
from ember_ml.backend.jax.host_transfer import device_of
from ember_ml.backend.jax.jitting import jitted, static

_HIGHEST = lax.Precision.HIGHEST


@jitted
def matmul(x: jax.Array, y: jax.Array) -> jax.Array:
    return jnp.matmul(x, y, precision=_HIGHEST)


@jitted
def dot(x: jax.Array, y: jax.Array) -> jax.Array:
    return jnp.dot(x, y, precision=_HIGHEST)


@jitted
def outer(x: jax.Array, y: jax.Array) -> jax.Array:
    if x.ndim != 1 or y.ndim != 1:
        raise ValueError(f"outer takes two 1-D tensors, not {x.ndim}-D and {y.ndim}-D; flatten them first")
    return x[:, None] * y


def linear(x: jax.Array, weight: jax.Array, bias: jax.Array | None) -> jax.Array:
    # JAX 0.10 on the CPU: rounds the product before the bias is added, and every step of the sum of a gradient. On GPUs
    # the product and the addition are one kernel, which a product in float32 would not be.
    if bias is not None and x.dtype in HALVES and device_of(x).startswith("cpu"):
        return _linear_of_halves(x, weight, bias)
    return _linear(x, weight, bias)


@jitted
def _linear(x: jax.Array, weight: jax.Array, bias: jax.Array | None) -> jax.Array:
    check_linear(weight, bias)
    product = jnp.matmul(x, weight.T, precision=_HIGHEST)
    return product if bias is None else product + bias


@jitted
def _linear_of_halves(x: jax.Array, weight: jax.Array, bias: jax.Array) -> jax.Array:
    check_linear(weight, bias)
    return _linear_half(x, weight, bias)


@jax.custom_jvp
def _linear_half(x: jax.Array, weight: jax.Array, bias: jax.Array) -> jax.Array:
    """Multiply and add in float32, rounded once; the gradient of the bias is summed in float32 too."""
    product = jnp.matmul(x, weight.T, precision=_HIGHEST, preferred_element_type=jnp.float32)
    return (product + bias.astype(jnp.float32)).astype(x.dtype)


@_linear_half.defjvp
def _(primals: tuple[jax.Array, ...], tangents: tuple[jax.Array, ...]) -> tuple[jax.Array, jax.Array]:
    x, weight, bias = primals
    by_x, by_weight, by_bias = tangents
    result = _linear_half(x, weight, bias)
    tangent = jnp.matmul(by_x, weight.T, precision=_HIGHEST) + jnp.matmul(x, by_weight.T, precision=_HIGHEST)
    wide = jnp.broadcast_to(by_bias.astype(jnp.float32), result.shape)  # transposed, this is a sum in float32
    return result, tangent + wide.astype(result.dtype)


def einsum(subscripts: str, operands: Sequence[jax.Array]) -> jax.Array:
    read_subscripts(subscripts, [x.shape for x in operands])
    return _einsum(subscripts, list(operands))


@static(0)
def _einsum(subscripts: str, operands: list[jax.Array]) -> jax.Array:
    return jnp.einsum(subscripts, *operands, precision=_HIGHEST)


def diagonal(x: jax.Array, offset: int, axis1: int, axis2: int) -> jax.Array:
    if x.ndim < 2:
        raise ValueError(f"a diagonal needs at least 2 dimensions, not {x.ndim}")
    return jnp.diagonal(x, offset, axis1, axis2)
