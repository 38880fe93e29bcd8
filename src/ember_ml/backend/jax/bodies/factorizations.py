"""Factorizations of matrices, on JAX: one program each, which also says of which matrices there is one."""

# JAX 0.10: NaN where there is no factorization, and numbers for some matrices that hold NaN

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from ember_ml.backend.common.linalg import (
    NEARLY_LARGEST,
    NOT_DEFINITE,
    NOT_FINITE,
    check_matrix,
    check_square,
    order_step,
)
from ember_ml.backend.common.named_results import EighResult, EigResult, LUResult, QRResult, SVDResult
from ember_ml.backend.contract import Body
from ember_ml.backend.jax.jitting import jitted, static
from ember_ml.backend.jax.tracing import values_are_read
from ember_ml.errors import LinAlgError

__all__ = ["adjoint", "or_nan", "refusing"]


def refusing(message: str) -> Callable[[Body], Body]:
    """Wrap a body that returns a result and of which matrices there is none, which raise LinAlgError."""

    def wrap(compute: Body) -> Body:
        def body(*args: Any) -> Any:
            result, failed = compute(*args)
            if values_are_read(failed) and failed.any():
                raise LinAlgError(message)
            return result

        return body

    return wrap


def or_nan(part: jax.Array, whole: jax.Array) -> jax.Array:
    """Return ``part`` where its matrix was ``whole``, otherwise NaN."""
    return jnp.where(whole.reshape(*whole.shape, *(1,) * (part.ndim - whole.ndim)), part, jnp.nan)


def adjoint(x: jax.Array) -> jax.Array:
    return jnp.conj(jnp.swapaxes(x, -2, -1))


def _of_finite(native: Callable[..., Any], check: Callable[[Any], None]) -> Callable[..., Any]:
    """Wrap ``native``: LinAlgError for matrices that are not finite, or NaN where values are not checked."""

    @refusing(NOT_FINITE)
    @static(1)
    def compute(x: jax.Array, options: tuple[Any, ...]) -> tuple[Any, jax.Array]:
        check(x)
        whole = jnp.isfinite(x).all(axis=(-2, -1))
        result = native(jnp.where(whole[..., None, None], x, 0), *options)
        return jax.tree.map(lambda part: or_nan(part, whole), result), ~whole

    return lambda x, *options: compute(x, options)


def _find_phases(vectors: jax.Array) -> jax.Array:
    """Return the signs or phases, one for each column, of the first components that are nearly the largest."""
    vectors = lax.stop_gradient(vectors)
    size = jnp.abs(vectors)
    index = jnp.argmax(size >= NEARLY_LARGEST * jnp.max(size, axis=-2, keepdims=True), axis=-2, keepdims=True)
    return _find_phase(jnp.take_along_axis(vectors, index, axis=-2))


def _find_phase(x: jax.Array) -> jax.Array:
    size = jnp.abs(x)
    return jnp.where(size == 0, 1, x / jnp.where(size == 0, 1, size))


def _turn_first(columns: jax.Array, phases: jax.Array) -> jax.Array:
    """Multiply the first columns, one for each phase; the others stay as they are."""
    count = phases.shape[-1]
    return columns.at[..., :count].multiply(phases) if count < columns.shape[-1] else columns * phases


def _svd(x: jax.Array, full_matrices: bool) -> SVDResult:
    u, s, vh = _svd_of_any_phase(x, full_matrices)
    if not x.size:
        return SVDResult(u, s, vh)
    phases = _find_phases(u[..., : s.shape[-1]])
    turned = _turn_first(jnp.swapaxes(vh, -2, -1), phases)
    return SVDResult(_turn_first(u, jnp.conj(phases)), s, jnp.swapaxes(turned, -2, -1))


def _svd_by_library(x: jax.Array, full_matrices: bool) -> Any:
    # JAX 0.11 on CUDA: the method of Jacobi, its choice for small matrices, loses a digit in float32
    algorithm = lax.linalg.SvdAlgorithm.QR if jax.default_backend() == "gpu" else None
    return lax.linalg.svd(x, full_matrices=full_matrices, algorithm=algorithm)


def _svd_of_any_phase(x: jax.Array, full_matrices: bool) -> tuple[jax.Array, jax.Array, jax.Array]:
    rows, columns = x.shape[-2:]
    if full_matrices or max(rows, columns) < 2 * min(rows, columns) or not x.size:
        u, s, vh = _svd_by_library(x, full_matrices)
        return u, s, vh
    if rows < columns:
        u, s, vh = _svd_of_any_phase(adjoint(x), False)
        return adjoint(vh), s, adjoint(u)
    q, r = jnp.linalg.qr(x)  # QR reduces a tall matrix to a small one
    u, s, vh = _svd_by_library(r, True)
    return jnp.matmul(q, u, precision=lax.Precision.HIGHEST), s, vh


def _svdvals(x: jax.Array) -> jax.Array:
    return jnp.linalg.svd(x, compute_uv=False)


def _eigh(x: jax.Array) -> EighResult:
    # JAX 0.10: by default the mean of both triangles; the contract reads the lower one
    vectors, values = lax.linalg.eigh(x, lower=True, symmetrize_input=False)
    return EighResult(values, vectors * jnp.conj(_find_phases(vectors)) if x.size else vectors)


def _eigvalsh(x: jax.Array) -> jax.Array:
    return lax.linalg.eigh(x, lower=True, symmetrize_input=False)[1]


def _find_order(values: jax.Array) -> jax.Array:
    """Return the order of ascending real parts, and of ascending imaginary parts where those are nearly equal."""
    values = lax.stop_gradient(values)
    step = jnp.max(jnp.abs(values), axis=-1, keepdims=True) * order_step(float(jnp.finfo(values.dtype).eps))
    return jnp.lexsort((values.imag, jnp.round(values.real / jnp.where(step > 0, step, 1))), axis=-1)


def _eig(x: jax.Array) -> EigResult:
    values, vectors = jnp.linalg.eig(x)
    if not x.size:
        return EigResult(values, vectors)
    order = _find_order(values)
    vectors = jnp.take_along_axis(vectors, order[..., None, :], axis=-1)
    return EigResult(jnp.take_along_axis(values, order, axis=-1), vectors * jnp.conj(_find_phases(vectors)))


def _eigvals(x: jax.Array) -> jax.Array:
    values = jnp.linalg.eigvals(x)
    return jnp.take_along_axis(values, _find_order(values), axis=-1) if x.size else values


svd = _of_finite(_svd, check_matrix)
svdvals = _of_finite(_svdvals, check_matrix)
eigh = _of_finite(_eigh, check_square)
eigvalsh = _of_finite(_eigvalsh, check_square)
eig = _of_finite(_eig, check_square)
eigvals = _of_finite(_eigvals, check_square)


@static(1)
def qr(x: jax.Array, mode: str) -> QRResult:
    check_matrix(x)
    if mode not in ("reduced", "complete"):
        raise ValueError(f"mode must be 'reduced' or 'complete', not {mode!r}")
    q, r = jnp.linalg.qr(x, mode)
    if jnp.iscomplexobj(x) and x.size:
        phases = _find_phase(jnp.diagonal(r, 0, -2, -1))[..., None, :]
        turned = _turn_first(jnp.swapaxes(r, -2, -1), jnp.conj(phases))
        q, r = _turn_first(q, phases), jnp.swapaxes(turned, -2, -1)
    return QRResult(q, r)


@refusing(NOT_DEFINITE)
@static(1)
def cholesky(x: jax.Array, upper: bool) -> tuple[jax.Array, jax.Array]:
    check_square(x)
    # JAX 0.10: by default the mean of both triangles; the contract reads the lower one
    factor = lax.linalg.cholesky(x, symmetrize_input=False)
    definite = jnp.isfinite(jnp.diagonal(factor, 0, -2, -1)).all(axis=-1)
    factor = or_nan(factor, definite)
    return adjoint(factor) if upper else factor, ~definite


@jitted
def lu_factor(x: jax.Array) -> LUResult:
    check_matrix(x)
    lu, pivots, _ = lax.linalg.lu(x)
    return LUResult(lu, pivots.astype(jnp.int64))
