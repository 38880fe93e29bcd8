"""Linear systems and determinants, on JAX: one program each, which also says which matrices were singular."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from ember_ml.backend.common.linalg import SINGULAR, check_square, check_system
from ember_ml.backend.common.named_results import SlogdetResult
from ember_ml.backend.jax.bodies.factorizations import or_nan, refusing
from ember_ml.backend.jax.jitting import jitted, static


@refusing(SINGULAR)
@jitted
def solve(a: jax.Array, b: jax.Array) -> tuple[jax.Array, jax.Array]:
    check_system(a, b)
    left, right = _columns(a, b)
    result, singular = _solve_columns(left, right)
    return result[..., 0] if b.ndim == 1 else result, singular


def _columns(a: jax.Array, b: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Broadcast the leading dimensions of both sides; return the right one as columns."""
    b = b[:, None] if b.ndim == 1 else b
    stack = jnp.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return jnp.broadcast_to(a, (*stack, *a.shape[-2:])), jnp.broadcast_to(b, (*stack, *b.shape[-2:]))


def _solve_columns(a: jax.Array, b: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return the solutions, NaN for singular matrices, and which matrices are singular."""
    is_known = ~jnp.isnan(a).any(axis=(-2, -1))  # JAX 0.10: factors of NaN may have zeros
    lu, _, order = lax.linalg.lu(a)
    b = jnp.take_along_axis(b, order[..., None], axis=-2)
    b = lax.linalg.triangular_solve(lu, b, left_side=True, lower=True, unit_diagonal=True)
    result, singular = _solve_triangle(lu, b, lower=False)
    return or_nan(result, is_known), singular & is_known


def _solve_triangle(a: jax.Array, b: jax.Array, lower: bool) -> tuple[jax.Array, jax.Array]:
    # JAX 0.10: infinities and NaN for singular matrices
    singular = (jnp.diagonal(a, 0, -2, -1) == 0).any(axis=-1)
    return or_nan(lax.linalg.triangular_solve(a, b, left_side=True, lower=lower), ~singular), singular


@refusing(SINGULAR)
@static(2)
def solve_triangular(a: jax.Array, b: jax.Array, lower: bool) -> tuple[jax.Array, jax.Array]:
    check_system(a, b)
    left, right = _columns(a, b)
    result, singular = _solve_triangle(left, right, lower)
    return result[..., 0] if b.ndim == 1 else result, singular


@refusing(SINGULAR)
@jitted
def inv(x: jax.Array) -> tuple[jax.Array, jax.Array]:
    check_square(x)
    return _solve_columns(x, jnp.broadcast_to(jnp.eye(x.shape[-1], dtype=x.dtype), x.shape))


@jitted
def _pivots_and_sign(x: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return the diagonal of U, and -1 for an odd number of row exchanges, otherwise 1."""
    lu, pivots, _ = lax.linalg.lu(x)
    exchanges = jnp.sum(pivots != jnp.arange(x.shape[-1]), axis=-1)
    # a pivot of 0 is found before the NaN in the rest of the matrix
    diagonal = or_nan(jnp.diagonal(lu, 0, -2, -1), ~jnp.isnan(x).any(axis=(-2, -1)))
    return diagonal, (1 - 2 * (exchanges % 2)).astype(x.dtype)


@jitted
def det(x: jax.Array) -> jax.Array:
    check_square(x)
    diagonal, sign = _pivots_and_sign(x)
    return jnp.prod(diagonal, axis=-1) * sign


@jitted
def slogdet(x: jax.Array) -> SlogdetResult:
    check_square(x)
    diagonal, sign = _pivots_and_sign(x)
    size = jnp.abs(diagonal)
    return SlogdetResult(jnp.prod(jnp.sign(diagonal), axis=-1) * sign, jnp.sum(jnp.log(size), axis=-1))
