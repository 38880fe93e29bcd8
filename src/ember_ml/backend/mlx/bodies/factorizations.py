"""Factorizations of matrices, on MLX: on the CPU stream, for stacks that are not empty."""

# MLX 0.32: factorizes on the CPU only; fails while it evaluates, and some failures end the process. Matrices without a
# factorization are replaced before, and their results by NaN afterwards.

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import mlx.core as mx

from ember_ml.backend import value_checks as checks
from ember_ml.backend.common.linalg import (
    NEARLY_LARGEST,
    NOT_DEFINITE,
    NOT_FINITE,
    check_matrix,
    check_square,
    order_step,
)
from ember_ml.backend.common.named_results import EighResult, EigResult, LUResult, QRResult, SVDResult
from ember_ml.backend.contract import ByDType
from ember_ml.backend.mlx import complex_matrices as cm
from ember_ml.backend.mlx.bodies.sorting import argsort
from ember_ml.backend.mlx.empty_reductions import all_along
from ember_ml.backend.mlx.graph_probe import is_vectorizing
from ember_ml.core import dtypes as dt
from ember_ml.errors import LinAlgError, UnsupportedDType

__all__ = ["lu_parts", "or_nan", "raise_if"]


def raise_if(failed: mx.array, message: str) -> None:
    """Raise LinAlgError where any is true, unless values are not checked, or traced and cannot be read."""
    _is_checked(mx.logical_not(failed), message)


def _is_checked(passed: mx.array, message: str) -> bool:
    """Whether all is known to be true; LinAlgError where it is not. Values may be unchecked, or traced and unknown."""
    if not checks.enabled:
        return False
    try:
        has_passed = all_along(passed).item()
    except ValueError:
        return False
    if not has_passed:
        raise LinAlgError(message)
    return True


def or_nan(part: mx.array, whole: mx.array) -> mx.array:
    """Return ``part`` where its matrix was ``whole``, otherwise NaN."""
    whole = whole.reshape(*whole.shape, *(1,) * (part.ndim - whole.ndim))
    return mx.where(whole, part, mx.array(math.nan, dtype=part.dtype))


def _of_finite(native: Callable[..., Any], check: Callable[[Any], None]) -> Callable[..., Any]:
    """Wrap ``native``: LinAlgError for matrices that are not finite, or NaN where values are not checked."""

    def body(x: mx.array, *options: Any) -> Any:
        check(x)
        whole = all_along(mx.isfinite(x), axis=(-2, -1))
        if _is_checked(whole, NOT_FINITE):
            return native(x, *options)
        result = native(mx.where(whole[..., None, None], x, mx.array(0, dtype=x.dtype)), *options)
        if isinstance(result, tuple):
            return type(result)(*(or_nan(part, whole) for part in result))
        return or_nan(result, whole)

    return body


def _qr(x: mx.array) -> tuple[mx.array, mx.array]:
    if x.dtype == mx.complex64 or is_vectorizing():  # MLX 0.32: no vmap of qr
        return cm.householder(x, complete=False)
    return mx.linalg.qr(x, stream=mx.cpu)


def _find_phases(vectors: mx.array) -> mx.array:
    """Return the signs or phases, one for each column, of the first components that are nearly the largest."""
    size = mx.abs(vectors)
    is_large = size >= NEARLY_LARGEST * mx.max(size, axis=-2, keepdims=True)
    index = mx.argmax(is_large.astype(mx.uint8), axis=-2, keepdims=True)
    return _find_phase(mx.take_along_axis(vectors, index, axis=-2))


def _find_phase(x: mx.array) -> mx.array:
    if x.dtype != mx.complex64:
        return mx.where(x < 0, mx.array(-1, dtype=x.dtype), mx.array(1, dtype=x.dtype))
    size = mx.abs(x)
    return mx.where(size == 0, mx.array(1, dtype=x.dtype), x / mx.where(size == 0, 1, size))


def _turn_first(columns: mx.array, phases: mx.array) -> mx.array:
    """Multiply the first columns, one for each phase; the others stay as they are."""
    count = columns.shape[-1] - phases.shape[-1]
    if count:
        phases = mx.concatenate([phases, mx.ones((*phases.shape[:-1], count), dtype=phases.dtype)], axis=-1)
    return columns * phases


def _svd(x: mx.array, full_matrices: bool) -> SVDResult:
    u, s, vh = _svd_of_any_phase(x, full_matrices)
    if 0 in x.shape:
        return SVDResult(u, s, vh)
    phases = _find_phases(u[..., : s.shape[-1]])
    turned = _turn_first(mx.swapaxes(vh, -2, -1), phases)
    return SVDResult(_turn_first(u, mx.conj(phases)), s, mx.swapaxes(turned, -2, -1))


def _svd_of_any_phase(x: mx.array, full_matrices: bool) -> SVDResult:
    rows, columns = x.shape[-2:]
    if full_matrices or rows == columns or 0 in x.shape:
        u, s, vh = mx.linalg.svd(x, stream=mx.cpu)
        size = min(rows, columns)
        return SVDResult(u, s, vh) if full_matrices else SVDResult(u[..., :size], s, vh[..., :size, :])
    if rows < columns:
        u, s, vh = _svd_of_any_phase(cm.adjoint(x), False)
        return SVDResult(cm.adjoint(vh), s, cm.adjoint(u))
    # MLX 0.32: always computes the full U; QR reduces a tall matrix to a small one
    q, r = _qr(x)
    u, s, vh = mx.linalg.svd(r, stream=mx.cpu)
    return SVDResult(mx.matmul(q, u, stream=mx.cpu), s, vh)


def _svdvals(x: mx.array) -> mx.array:
    if 0 in x.shape:
        real = mx.float32 if x.dtype == mx.complex64 else x.dtype
        return mx.zeros((*x.shape[:-2], min(x.shape[-2:])), dtype=real)
    return mx.linalg.svd(x, compute_uv=False, stream=mx.cpu)  # type: ignore[return-value]


def _eigh(x: mx.array) -> EighResult:
    values, vectors = mx.linalg.eigh(x, "L", stream=mx.cpu)
    return EighResult(values, _turn_columns(vectors) if x.size else vectors)


def _turn_columns(vectors: mx.array) -> mx.array:
    """Give the columns the signs or phases of the convention."""
    phases = _find_phases(vectors)
    return vectors * (mx.conj(phases) if vectors.dtype == mx.complex64 else phases)


def _find_order(values: mx.array) -> mx.array:
    """Return the order of ascending real parts, and of ascending imaginary parts where those are nearly equal."""
    step = mx.max(mx.abs(values), axis=-1, keepdims=True) * order_step(float(mx.finfo(mx.float32).eps))
    by_imag = argsort(mx.imag(values), -1, False, True)
    places = mx.round(mx.real(values) / mx.where(step > 0, step, 1))
    again = argsort(mx.take_along_axis(places, by_imag, axis=-1), -1, False, True)
    return mx.take_along_axis(by_imag, again, axis=-1)


def _eigvalsh(x: mx.array) -> mx.array:
    return mx.linalg.eigvalsh(x, "L", stream=mx.cpu)


def _eig(x: mx.array) -> EigResult:
    values, vectors = mx.linalg.eig(x, stream=mx.cpu)
    if x.dtype == mx.complex64 and _vectors_are_conjugates():
        vectors = mx.conj(vectors)
    if not x.size:
        return EigResult(values, vectors)
    order = _find_order(values)
    vectors = mx.take_along_axis(vectors, mx.broadcast_to(order[..., None, :], vectors.shape), axis=-1)
    return EigResult(mx.take_along_axis(values, order, axis=-1), _turn_columns(vectors))


@cache
def _vectors_are_conjugates() -> bool:
    """Whether this MLX returns the conjugates of the eigenvectors of complex matrices."""
    # MLX 0.32: returns the conjugates
    x = mx.array([[0, 1], [1j, 0]], dtype=mx.complex64)
    values, vectors = mx.linalg.eig(x, stream=mx.cpu)
    return bool((mx.max(mx.abs(mx.matmul(x, vectors) - vectors * values)) > 0.1).item())


def _eigvals(x: mx.array) -> mx.array:
    values = mx.linalg.eigvals(x, stream=mx.cpu)
    return mx.take_along_axis(values, _find_order(values), axis=-1) if x.size else values


def _refuse_double(*args: Any) -> Any:
    # MLX 0.32: silently returns complex64
    raise UnsupportedDType(
        "MLX has no complex128 for the eigenvalues of float64; cast to float32, or use another backend"
    )


svd = _of_finite(_svd, check_matrix)
svdvals = _of_finite(_svdvals, check_matrix)
eigh = _of_finite(_eigh, check_square)
eigvalsh = _of_finite(_eigvalsh, check_square)
eig = ByDType(_of_finite(_eig, check_square), {dt.float64: _refuse_double})
eigvals = ByDType(_of_finite(_eigvals, check_square), {dt.float64: _refuse_double})


def qr(x: mx.array, mode: str) -> QRResult:
    check_matrix(x)
    if mode not in ("reduced", "complete"):
        raise ValueError(f"mode must be 'reduced' or 'complete', not {mode!r}")
    if x.dtype == mx.complex64:
        q, r = cm.householder(x, complete=mode == "complete")
        if 0 in x.shape:
            return QRResult(q, r)
        phases = _find_phase(mx.diagonal(r, 0, -2, -1))[..., None, :]
        turned = _turn_first(mx.swapaxes(r, -2, -1), mx.conj(phases))
        return QRResult(_turn_first(q, phases), mx.swapaxes(turned, -2, -1))
    if mode == "reduced":
        return QRResult(*_qr(x))
    if is_vectorizing():
        return QRResult(*cm.householder(x, complete=True))
    return QRResult(*_complete(*mx.linalg.qr(x, stream=mx.cpu)))


def _complete(q: mx.array, r: mx.array) -> tuple[mx.array, mx.array]:
    """Return the complete factors for the reduced ones, with the columns that LAPACK's reflections give."""
    # MLX 0.32: has the reduced ones only. Q is I - V T V^T with the reflections' vectors V, whose upper rows are V1 and
    # lower ones V2; the first columns less the identity are A = -V T V1^T, the others are -V T V2^T = A (A2 / A1)^T.
    # A1 is singular where a reflection is left out, and any solution then gives the same
    rows, columns = q.shape[-2:]
    if rows == columns:
        return q, r
    change = q - mx.eye(rows, columns, dtype=q.dtype)
    ratio = mx.matmul(change[..., columns:, :], mx.linalg.pinv(change[..., :columns, :], stream=mx.cpu), stream=mx.cpu)
    others = mx.matmul(change, mx.swapaxes(ratio, -2, -1), stream=mx.cpu)
    others = others + mx.eye(rows, rows - columns, -columns, dtype=q.dtype)
    zeros = mx.zeros((*r.shape[:-2], rows - columns, r.shape[-1]), dtype=r.dtype)
    return mx.concatenate([q, others], axis=-1), mx.concatenate([r, zeros], axis=-2)


def cholesky(x: mx.array, upper: bool) -> mx.array:
    check_square(x)
    if x.dtype == mx.complex64:
        below = mx.tril(x, -1)
        size = x.shape[-1]
        diagonal = mx.real(mx.diagonal(x, 0, -2, -1))[..., None] * mx.eye(size)
        hermitian = below + cm.adjoint(below) + diagonal
        factor = cm.extract(mx.linalg.cholesky(cm.embed(hermitian), stream=mx.cpu))
    else:
        factor = mx.linalg.cholesky(x, stream=mx.cpu)
    # MLX 0.32: returns a factor in any case; one of its pivots is not positive unless the matrix is positive definite
    diagonal = mx.real(mx.diagonal(factor, 0, -2, -1))
    definite = all_along(mx.logical_and(diagonal > 0, mx.isfinite(diagonal)), axis=-1)
    raise_if(mx.logical_not(definite), NOT_DEFINITE)
    factor = or_nan(factor, definite)
    return cm.adjoint(factor) if upper else factor


def lu_factor(x: mx.array) -> LUResult:
    check_matrix(x)
    return LUResult(*lu_parts(x))


def lu_parts(x: mx.array) -> tuple[mx.array, mx.array]:
    """Return the LU factors in one matrix, and the row exchanges as int64."""
    if 0 in x.shape:
        return x, mx.zeros((*x.shape[:-2], min(x.shape[-2:])), dtype=mx.int64)
    if x.dtype == mx.complex64 or is_vectorizing():
        lu, pivots, _ = cm.lu(x)
        return lu, pivots.astype(mx.int64)
    lu, pivots = mx.linalg.lu_factor(x, stream=mx.cpu)
    # MLX 0.32: elementwise functions of these factors corrupt memory, and a copy does not
    return mx.contiguous(lu), pivots.astype(mx.int64)
