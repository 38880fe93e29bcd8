"""Factorizations of matrices, on NumPy."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

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
from ember_ml.errors import LinAlgError

__all__ = ["arrange", "is_finite", "turn_columns", "turn_pairs"]


_largest: Any = np.maximum.reduce
_smallest: Any = np.minimum.reduce
_SMALL = 10_000
"""Matrices of fewer elements are searched at once: each function costs more than its work."""


def is_finite(x: np.ndarray) -> bool:
    """Whether all elements are finite; the sum of squares answers it in a fraction of the time unless it overflows."""
    return math.isfinite(np.vdot(x, x).real) or bool(np.isfinite(x).all())


def _of_finite(native: Callable[..., Any], check: Callable[[Any], None]) -> Callable[..., Any]:
    """Wrap ``native``: LinAlgError for matrices that are not finite, or NaN where values are not checked."""
    # NumPy 2.4: returns numbers for some of them

    def body(x: np.ndarray, *options: Any) -> Any:
        check(x)
        if is_finite(x):
            return native(x, *options)
        if checks.enabled:
            raise LinAlgError(NOT_FINITE)
        whole = np.asarray(np.isfinite(x).all(axis=(-2, -1)))
        result = native(np.where(whole[..., None, None], x, 0), *options)
        if isinstance(result, tuple):
            return type(result)(*(_or_nan(part, whole) for part in result))
        return _or_nan(result, whole)

    return body


def _or_nan(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """Return ``part`` where its matrix was ``whole``, otherwise NaN."""
    whole = whole.reshape(whole.shape + (1,) * (part.ndim - whole.ndim))
    return np.where(whole, part, np.asarray(np.nan, part.dtype))


def _find_phases(vectors: np.ndarray) -> np.ndarray:
    """Return the signs or phases, one for each column, of the first components that are nearly the largest."""
    is_plain = vectors.dtype.kind != "c" and vectors.ndim == 2
    return _find_signs(vectors) if is_plain and vectors.size > _SMALL else _search_phases(vectors)


def _find_signs(vectors: np.ndarray) -> np.ndarray:
    """Return the signs of the columns of one real matrix: two reductions tell them, except where they nearly tie."""
    high, low = _largest(vectors, 0), _smallest(vectors, 0)
    np.negative(low, out=low)
    signs = np.copysign(np.ones((), vectors.dtype), high - low)
    is_tied = np.minimum(high, low) >= NEARLY_LARGEST * np.maximum(high, low)
    if is_tied.any():
        signs[is_tied] = _search_phases(vectors[:, is_tied])[0]
    return signs[None]


def _search_phases(vectors: np.ndarray) -> np.ndarray:
    """Return the signs or phases by comparing all components."""
    if vectors.dtype.kind == "c":  # squares order the components as their sizes do, in a third of the time
        size = np.square(np.real(vectors))
        size += np.square(np.imag(vectors))
        share = NEARLY_LARGEST**2
    else:
        size, share = np.abs(vectors), NEARLY_LARGEST
    limit = _largest(size, -2, None, None, True)
    limit *= share
    index = (size >= limit).argmax(-2)
    if vectors.ndim == 2:
        pivot = vectors[index, np.arange(vectors.shape[-1])][None]
    else:
        pivot = np.take_along_axis(vectors, index[..., None, :], axis=-2)
    if vectors.dtype.kind != "c":
        return np.copysign(1.0, pivot)
    size = np.abs(pivot)
    return np.where(size > 0, pivot / np.where(size > 0, size, 1), np.ones((), vectors.dtype))


def turn_columns(vectors: np.ndarray) -> None:
    """Give the columns, in place, the signs or phases of the convention."""
    vectors *= _find_phases(vectors).conj()


def turn_pairs(u: np.ndarray, vh: np.ndarray, size: int) -> None:
    """Give ``size`` columns of ``u`` the phases of the convention, and the rows of ``vh`` theirs, in place."""
    first = u[..., :size]
    phases = _find_phases(first)
    first *= phases.conj()
    vh[..., :size, :] *= phases.swapaxes(-2, -1)


def _svd(x: np.ndarray, full_matrices: bool) -> SVDResult:
    u, s, vh = np.linalg.svd(x, full_matrices)
    if x.size:
        turn_pairs(u, vh, s.shape[-1])
    return SVDResult(u, s, vh)


def _eigh(x: np.ndarray) -> EighResult:
    values, vectors = np.linalg.eigh(x)
    if x.size:
        turn_columns(vectors)
    return EighResult(values, vectors)


def _find_order(values: np.ndarray) -> np.ndarray:
    """Return the order of ascending real parts, and of ascending imaginary parts where those are nearly equal."""
    step = np.abs(values).max(axis=-1, keepdims=True, initial=0) * order_step(float(np.finfo(values.dtype).eps))
    return np.lexsort((np.imag(values), np.rint(np.real(values) / np.where(step > 0, step, 1))), axis=-1)


def _complex(x: np.ndarray) -> np.ndarray:
    # NumPy 2.4: returns real numbers where all imaginary parts are 0
    return x if x.dtype.kind == "c" else x.astype(np.result_type(x.dtype, np.complex64))


def _eig(x: np.ndarray) -> EigResult:
    values, vectors = map(_complex, np.linalg.eig(x))
    if not x.size:
        return EigResult(values, vectors)
    return EigResult(*arrange(values, vectors))


def arrange(values: np.ndarray, vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return eigenvalues and eigenvectors in the order and with the phases of the convention."""
    order = _find_order(values)
    if values.ndim == 1:
        values, vectors = values[order], vectors[:, order]
    else:
        values = np.take_along_axis(values, order, axis=-1)
        vectors = np.take_along_axis(vectors, order[..., None, :], axis=-1)
    turn_columns(vectors)
    return values, vectors


def _eigvals(x: np.ndarray) -> np.ndarray:
    values = _complex(np.linalg.eigvals(x))
    return np.take_along_axis(values, _find_order(values), axis=-1) if x.size else values


svd = _of_finite(_svd, check_matrix)
svdvals = _of_finite(np.linalg.svdvals, check_matrix)
eigh = _of_finite(_eigh, check_square)
eigvalsh = _of_finite(np.linalg.eigvalsh, check_square)
eig = _of_finite(_eig, check_square)
eigvals = _of_finite(_eigvals, check_square)


def qr(x: np.ndarray, mode: str) -> QRResult:
    check_matrix(x)
    if mode not in ("reduced", "complete"):
        raise ValueError(f"mode must be 'reduced' or 'complete', not {mode!r}")
    q, r = np.linalg.qr(x, mode)
    if x.dtype.kind == "c" and x.size:
        size = min(x.shape[-2:])
        pivot = np.diagonal(r, 0, -2, -1)
        length = np.abs(pivot)
        phases = np.where(length > 0, pivot / np.where(length > 0, length, 1), 1).astype(x.dtype)
        q[..., :size] *= phases[..., None, :]
        r[..., :size, :] *= phases.conj()[..., :, None]
    return QRResult(q, r)


def cholesky(x: np.ndarray, upper: bool) -> np.ndarray:
    check_square(x)
    try:
        factor = np.linalg.cholesky(x)
    except np.linalg.LinAlgError:
        if checks.enabled:
            raise LinAlgError(NOT_DEFINITE) from None
        factor = _cholesky_each(x)
    definite = np.isfinite(np.diagonal(factor, 0, -2, -1))  # NumPy 2.4: accepts NaN and infinity
    if not definite.all():
        if checks.enabled:
            raise LinAlgError(NOT_DEFINITE)
        factor = _or_nan(factor, np.asarray(definite.all(axis=-1)))
    return factor.swapaxes(-2, -1).conj() if upper else factor


def _cholesky_each(x: np.ndarray) -> np.ndarray:
    factors = np.full(x.shape, np.nan, dtype=x.dtype)
    for place in np.ndindex(x.shape[:-2]):
        try:
            factors[place] = np.linalg.cholesky(x[place])
        except np.linalg.LinAlgError:
            continue
    return factors


def lu_factor(x: np.ndarray) -> LUResult:
    """Factorize row by row, for the whole stack at once."""
    check_matrix(x)
    rows, columns = x.shape[-2:]
    lu = x.reshape(math.prod(x.shape[:-2]), rows, columns).copy()
    stack = np.arange(len(lu))
    pivots = np.zeros((len(lu), min(rows, columns)), dtype=np.int64)
    with np.errstate(all="ignore"):
        for k in range(pivots.shape[1]):
            largest = k + np.abs(lu[:, k:, k]).argmax(axis=1)
            pivots[:, k] = largest
            lu[stack, k], lu[stack, largest] = lu[stack, largest], lu[stack, k]
            pivot = lu[:, k, k, None]
            lu[:, k + 1 :, k] /= np.where(pivot == 0, 1, pivot)
            lu[:, k + 1 :, k + 1 :] -= lu[:, k + 1 :, k, None] * lu[:, k, None, k + 1 :]
    return LUResult(lu.reshape(x.shape), pivots.reshape(*x.shape[:-2], min(rows, columns)))
