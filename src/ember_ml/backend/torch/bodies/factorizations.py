"""Factorizations of matrices, on PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ember_ml.backend.common.linalg import NOT_DEFINITE, NOT_FINITE, check_matrix, check_square
from ember_ml.backend.named_results import EighResult, EigResult, LUResult, QRResult, SVDResult
from ember_ml.backend.torch.readable_values import values_are_read
from ember_ml.errors import LinAlgError

__all__ = ["is_finite", "of_finite", "or_nan"]


def is_finite(x: torch.Tensor) -> bool:
    """Whether all elements are finite; the sum answers it in a tenth of the time unless it overflows."""
    return bool(torch.isfinite(x.sum())) or bool(torch.isfinite(x).all())


def or_nan(part: torch.Tensor, whole: torch.Tensor) -> torch.Tensor:
    """Return ``part`` where its matrix was ``whole``, otherwise NaN."""
    return torch.where(whole.reshape(*whole.shape, *(1,) * (part.ndim - whole.ndim)), part, torch.nan)


def of_finite(native: Callable[..., Any], check: Callable[[Any], None]) -> Callable[..., Any]:
    """Wrap ``native``: LinAlgError for matrices that are not finite, or NaN where values are not checked."""
    # torch 2.13: returns numbers for some of them; others end the process inside LAPACK

    def body(x: torch.Tensor, *options: Any) -> Any:
        check(x)
        if values_are_read(x):
            if not is_finite(x):
                raise LinAlgError(NOT_FINITE)
            return native(x, *options)
        whole = torch.isfinite(x).flatten(-2).all(dim=-1)
        result = native(torch.where(whole[..., None, None], x, 0), *options)
        if isinstance(result, tuple):
            return type(result)(*(or_nan(part, whole) for part in result))
        return or_nan(result, whole)

    return body


def _svd(x: torch.Tensor, full_matrices: bool) -> SVDResult:
    rows, columns = x.shape[-2:]
    if full_matrices or max(rows, columns) < 2 * min(rows, columns) or not x.numel():
        return SVDResult(*torch.linalg.svd(x, full_matrices))
    if rows < columns:
        u, s, vh = _svd(x.mH, False)
        return SVDResult(vh.mH, s, u.mH)
    # QR reduces a tall matrix to a small one: a sixth of the time for 5000 by 50
    q, r = torch.linalg.qr(x)
    u, s, vh = torch.linalg.svd(r)
    return SVDResult(q @ u, s, vh)


def _eigh(x: torch.Tensor) -> EighResult:
    return EighResult(*torch.linalg.eigh(x))


def _eig(x: torch.Tensor) -> EigResult:
    return EigResult(*torch.linalg.eig(x))


svd = of_finite(_svd, check_matrix)
svdvals = of_finite(torch.linalg.svdvals, check_matrix)
eigh = of_finite(_eigh, check_square)
eigvalsh = of_finite(torch.linalg.eigvalsh, check_square)
eig = of_finite(_eig, check_square)
eigvals = of_finite(torch.linalg.eigvals, check_square)


def qr(x: torch.Tensor, mode: str) -> QRResult:
    check_matrix(x)
    if mode not in ("reduced", "complete"):
        raise ValueError(f"mode must be 'reduced' or 'complete', not {mode!r}")
    if x.is_cuda and x.ndim > 2 and x.dtype in _WIDER:
        # torch 2.11 on CUDA: batched QR of float32 loses the orthogonality of Q where a matrix lacks full rank
        return QRResult(*(part.to(x.dtype) for part in torch.linalg.qr(x.to(_WIDER[x.dtype]), mode)))
    return QRResult(*torch.linalg.qr(x, mode))


_WIDER = {torch.float32: torch.float64, torch.complex64: torch.complex128}


def cholesky(x: torch.Tensor, upper: bool) -> torch.Tensor:
    check_square(x)
    factor, info = torch.linalg.cholesky_ex(x)
    if values_are_read(x):
        if info.any():
            raise LinAlgError(NOT_DEFINITE)
    else:
        factor = or_nan(factor, info == 0)
    return factor.mH if upper else factor


def lu_factor(x: torch.Tensor) -> LUResult:
    check_matrix(x)
    lu, pivots, _ = torch.linalg.lu_factor_ex(x)
    return LUResult(lu, pivots.to(torch.int64) - 1)  # torch 2.13: counts rows from 1
