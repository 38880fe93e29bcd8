"""Factorizations of matrices, on PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ember_ml.backend.common.linalg import (
    NEARLY_LARGEST,
    NOT_DEFINITE,
    NOT_FINITE,
    check_matrix,
    check_square,
    order_step,
    refuse_complete_qr,
)
from ember_ml.backend.common.named_results import EighResult, EigResult, LUResult, QRResult, SVDResult
from ember_ml.backend.numpy.bodies import factorizations as host
from ember_ml.backend.torch.host_transfer import as_shared_array
from ember_ml.backend.torch.readable_values import values_are_read
from ember_ml.errors import LinAlgError

__all__ = ["is_finite", "of_finite", "or_nan"]


def is_finite(x: torch.Tensor) -> bool:
    """Whether all elements are finite; the sum answers it in a tenth of the time unless it overflows."""
    array = as_shared_array(x)
    if array is not None:
        return host.is_finite(array)
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


def _find_phases(vectors: torch.Tensor) -> torch.Tensor:
    """Return the signs or phases, one for each column, of the first components that are nearly the largest."""
    vectors = vectors.detach()
    size = vectors.abs()
    index = (size >= NEARLY_LARGEST * size.amax(-2, True)).to(torch.uint8).argmax(-2, True)
    pivot = vectors.gather(-2, index)
    return torch.where(pivot == 0, 1, torch.sgn(pivot))


def _svd(x: torch.Tensor, full_matrices: bool) -> SVDResult:
    u, s, vh = _svd_of_any_phase(x, full_matrices)
    if not x.numel():
        return SVDResult(u, s, vh)
    size = s.shape[-1]
    array = as_shared_array(u)
    if array is not None:  # a tenth of the time of the small operations below
        host.turn_pairs(array, vh.numpy(), size)
        return SVDResult(u, s, vh)
    phases = _find_phases(u[..., :size])
    if u.shape[-1] == vh.shape[-2]:
        return SVDResult(u * phases.conj(), s, phases.mT * vh)
    return SVDResult(_turn_first(u, phases.conj()), s, _turn_first(vh.mT, phases).mT)


def _turn_first(columns: torch.Tensor, phases: torch.Tensor) -> torch.Tensor:
    """Multiply the first columns, one for each phase; the others stay as they are."""
    count = columns.shape[-1] - phases.shape[-1]
    return columns * torch.nn.functional.pad(phases, (0, count), value=1) if count else columns * phases


def _svd_of_any_phase(x: torch.Tensor, full_matrices: bool) -> SVDResult:
    rows, columns = x.shape[-2:]
    if full_matrices or max(rows, columns) < 2 * min(rows, columns) or not x.numel():
        return SVDResult(*torch.linalg.svd(x, full_matrices))
    if rows < columns:
        u, s, vh = _svd_of_any_phase(x.mH, False)
        return SVDResult(vh.mH, s, u.mH)
    # QR reduces a tall matrix to a small one: a sixth of the time for 5000 by 50
    q, r = torch.linalg.qr(x)
    u, s, vh = torch.linalg.svd(r)
    return SVDResult(q @ u, s, vh)


def _eigh(x: torch.Tensor) -> EighResult:
    values, vectors = torch.linalg.eigh(x)
    return EighResult(values, _turn_columns(vectors) if x.numel() else vectors)


def _turn_columns(vectors: torch.Tensor) -> torch.Tensor:
    """Give the columns of a new tensor the signs or phases of the convention."""
    array = as_shared_array(vectors)
    if array is None:
        return vectors * _find_phases(vectors).conj()
    host.turn_columns(array)
    return vectors


def _find_order(values: torch.Tensor) -> torch.Tensor:
    """Return the order of ascending real parts, and of ascending imaginary parts where those are nearly equal."""
    values = values.detach()
    step = values.abs().amax(-1, True) * order_step(torch.finfo(values.dtype).eps)
    by_imag = torch.argsort(values.imag, stable=True)
    places = torch.round(values.real / torch.where(step > 0, step, 1))
    return by_imag.gather(-1, torch.argsort(places.gather(-1, by_imag), stable=True))


def _eig(x: torch.Tensor) -> EigResult:
    values, vectors = torch.linalg.eig(x)
    if not x.numel():
        return EigResult(values, vectors)
    array = as_shared_array(vectors)
    if array is not None:
        return EigResult(*map(torch.from_numpy, host.arrange(values.numpy(), array)))
    order = _find_order(values)
    vectors = vectors.gather(-1, order[..., None, :].expand(vectors.shape))
    return EigResult(values.gather(-1, order), _turn_columns(vectors))


def _eigvals(x: torch.Tensor) -> torch.Tensor:
    values = torch.linalg.eigvals(x)
    return values.gather(-1, _find_order(values)) if x.numel() else values


svd = of_finite(_svd, check_matrix)
svdvals = of_finite(torch.linalg.svdvals, check_matrix)
eigh = of_finite(_eigh, check_square)
eigvalsh = of_finite(torch.linalg.eigvalsh, check_square)
eig = of_finite(_eig, check_square)
eigvals = of_finite(_eigvals, check_square)


def qr(x: torch.Tensor, mode: str) -> QRResult:
    check_matrix(x)
    if mode not in ("reduced", "complete"):
        raise ValueError(f"mode must be 'reduced' or 'complete', not {mode!r}")
    # torch 2.11 on CUDA: batched QR of float32 loses the orthogonality of Q where a matrix lacks full rank
    in_double = x.is_cuda and x.ndim > 2 and x.dtype in _WIDER
    q, r = torch.linalg.qr(x.to(_WIDER[x.dtype]) if in_double else x, mode)
    if q.requires_grad and mode == "complete" and x.shape[-2] > x.shape[-1]:
        for factor in (q, r):  # torch 2.13: RuntimeError, with a text of its own
            factor.register_hook(lambda _: refuse_complete_qr(*x.shape[-2:]))
    if x.is_complex() and x.numel():
        pivot = r.diagonal(0, -2, -1).detach()
        phases = torch.where(pivot == 0, 1, torch.sgn(pivot))[..., None, :]
        q, r = _turn_first(q, phases), _turn_first(r.mT, phases.conj()).mT
    return QRResult(q.to(x.dtype), r.to(x.dtype))


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
    lu, pivots, info = torch.linalg.lu_factor_ex(x)
    if x.is_cuda and values_are_read(info) and info.any():
        # torch 2.11 on CUDA: stops at a pivot of 0 in stacks of matrices; LAPACK goes on
        lu, pivots, _ = (part.to(x.device) for part in torch.linalg.lu_factor_ex(x.cpu()))
    return LUResult(lu, pivots.to(torch.int64) - 1)  # torch 2.13: counts rows from 1
