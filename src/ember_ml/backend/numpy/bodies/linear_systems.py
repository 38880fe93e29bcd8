"""Linear systems and determinants, on NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from ember_ml.backend import value_checks as checks
from ember_ml.backend.common.linalg import NOT_FINITE, SINGULAR, check_square, check_system
from ember_ml.backend.common.named_results import LstsqResult, SlogdetResult
from ember_ml.backend.numpy.bodies.factorizations import is_finite
from ember_ml.errors import LinAlgError

_SMALL = 64  # smaller triangular matrices are solved as general ones


def solve(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    check_system(a, b)
    if b.ndim == 1:
        return _solve_columns(a, np.broadcast_to(b[:, None], (*a.shape[:-1], 1)))[..., 0]
    return _solve_columns(a, b)


def _solve_columns(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    try:
        return np.linalg.solve(a, b)
    except np.linalg.LinAlgError:
        return _solve_each(a, b)


def _solve_each(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Solve one system after the other, after one of them failed."""
    # NumPy 2.4: calls some matrices with NaN singular; here NaN leads to NaN
    stack = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a, b = np.broadcast_to(a, (*stack, *a.shape[-2:])), np.broadcast_to(b, (*stack, *b.shape[-2:]))
    result = np.full(b.shape, np.nan, dtype=b.dtype)
    for place in np.ndindex(stack):
        try:
            result[place] = np.linalg.solve(a[place], b[place])
        except np.linalg.LinAlgError:
            if checks.enabled and not np.isnan(a[place]).any():
                raise LinAlgError(SINGULAR) from None
    return result


def inv(x: np.ndarray) -> np.ndarray:
    check_square(x)
    try:
        return np.linalg.inv(x)
    except np.linalg.LinAlgError:
        return _solve_each(x, np.eye(x.shape[-1], dtype=x.dtype))


def solve_triangular(a: np.ndarray, b: np.ndarray, lower: bool) -> np.ndarray:
    check_system(a, b)
    columns = b[:, None] if b.ndim == 1 else b
    singular = (np.diagonal(a, 0, -2, -1) == 0).any(axis=-1)
    if singular.any():
        if checks.enabled:
            raise LinAlgError(SINGULAR)
        a = np.where(singular[..., None, None], np.nan, a).astype(a.dtype)
    result = _substitute(np.tril(a) if lower else np.triu(a), columns, lower)
    return result[..., 0] if b.ndim == 1 else result


def _substitute(a: np.ndarray, b: np.ndarray, lower: bool) -> np.ndarray:
    """Solve a triangular system by halves: nearly all the work is matrix products."""
    size = a.shape[-1]
    if size <= _SMALL:
        return _solve_columns(a, b)
    middle = size // 2
    first, second = slice(0, middle), slice(middle, size)
    if not lower:
        first, second = second, first
    known = _substitute(a[..., first, first], b[..., first, :], lower)
    rest = _substitute(a[..., second, second], b[..., second, :] - np.matmul(a[..., second, first], known), lower)
    return np.concatenate((known, rest) if lower else (rest, known), axis=-2)


def det(x: np.ndarray) -> Any:
    check_square(x)
    with np.errstate(all="ignore"):
        # NumPy 2.4: 0 for a singular matrix with NaN
        return np.where(_has_nan(x), np.asarray(np.nan, x.dtype), np.linalg.det(x))


def slogdet(x: np.ndarray) -> SlogdetResult:
    check_square(x)
    unknown = _has_nan(x)
    with np.errstate(all="ignore"):
        sign, size = np.linalg.slogdet(x)
    return SlogdetResult(
        np.where(unknown, np.asarray(np.nan, x.dtype), sign), np.where(unknown, np.asarray(np.nan, size.dtype), size)
    )


def _has_nan(x: np.ndarray) -> np.ndarray:
    return np.asarray(np.isnan(x).any(axis=(-2, -1)))


def lstsq(a: np.ndarray, b: np.ndarray, rcond: float | None) -> LstsqResult:
    if a.ndim != 2 or b.ndim not in (1, 2) or a.shape[0] != b.shape[0]:
        raise ValueError(f"lstsq takes (m, n) with (m,) or (m, k), not {a.shape} with {b.shape}")
    if not (is_finite(a) and is_finite(b)):
        raise LinAlgError(NOT_FINITE)  # NumPy 2.4: returns numbers for some infinities
    solution, residuals, rank, values = np.linalg.lstsq(a, b, rcond)
    return LstsqResult(solution, residuals, np.asarray(rank, dtype=np.int64), values)
