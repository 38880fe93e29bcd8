"""Linear systems and determinants, on PyTorch."""

from __future__ import annotations

from typing import Any

import torch

from ember_ml.backend.common.linalg import NOT_FINITE, SINGULAR, check_matrix, check_square, check_system
from ember_ml.backend.common.named_results import LstsqResult, SlogdetResult
from ember_ml.backend.host_arrays import as_host
from ember_ml.backend.torch.bodies.factorizations import is_finite, of_finite, or_nan, svd
from ember_ml.backend.torch.gradients import is_inside_transform
from ember_ml.backend.torch.readable_values import is_mapped, values_are_read
from ember_ml.errors import LinAlgError


def _raise_or_nan(result: torch.Tensor, singular: torch.Tensor) -> torch.Tensor:
    """Raise LinAlgError where a matrix was singular, or return NaN there if values are not checked."""
    if values_are_read(singular):
        if singular.any():
            raise LinAlgError(SINGULAR)
        return result
    return or_nan(result, ~singular.broadcast_to(result.shape[:-2]))


def solve(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    check_system(a, b)
    # torch 2.13: takes some stacks of columns for a stack of vectors
    columns = b[:, None] if b.ndim == 1 else b
    stack = torch.broadcast_shapes(a.shape[:-2], columns.shape[:-2])
    if is_mapped(columns):  # torch 2.13: forgets to broadcast one matrix to a mapped stack of columns
        a = a.broadcast_to(*stack, *a.shape[-2:])
    result, info = torch.linalg.solve_ex(a, columns.broadcast_to(*stack, *columns.shape[-2:]))
    result = _raise_or_nan(result, info != 0)
    return result[..., 0] if b.ndim == 1 else result


def inv(x: torch.Tensor) -> torch.Tensor:
    check_square(x)
    result, info = torch.linalg.inv_ex(x)
    return _raise_or_nan(result, info != 0)


def solve_triangular(a: torch.Tensor, b: torch.Tensor, lower: bool) -> torch.Tensor:
    check_system(a, b)
    columns = b[:, None] if b.ndim == 1 else b
    result = torch.linalg.solve_triangular(a, columns, upper=not lower)
    result = _raise_or_nan(result, (a.diagonal(0, -2, -1) == 0).any(dim=-1))
    return result[..., 0] if b.ndim == 1 else result


def det(x: torch.Tensor) -> torch.Tensor:
    check_square(x)
    result = _nan_for_nan(torch.linalg.det(x), x)
    has_singular = values_are_read(result) and bool((result == 0).any())
    return _DetOfAny.apply(x) if has_singular else result


def _nan_for_nan(result: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """Return NaN for the determinants of matrices with NaN."""
    # torch 2.11 on CUDA: takes NaN for 0 when it looks for pivots
    return torch.where(x.isnan().flatten(-2).any(-1), torch.nan, result) if x.is_cuda else result


class _DetOfAny(torch.autograd.Function):
    """The determinant, with its gradient at singular matrices too."""

    # torch 2.13: the gradient is 0 at singular matrices (pytorch#104675)

    generate_vmap_rule = True

    @staticmethod
    def forward(x: torch.Tensor) -> torch.Tensor:
        return torch.linalg.det(x)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[torch.Tensor], output: torch.Tensor) -> None:
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> torch.Tensor:
        return gradients[0][..., None, None] * _cofactors(*ctx.saved_tensors).conj()

    @staticmethod
    def jvp(ctx: Any, *tangents: torch.Tensor) -> torch.Tensor:
        return (_cofactors(*ctx.saved_tensors) * tangents[0]).sum((-2, -1))


def _cofactors(x: torch.Tensor) -> torch.Tensor:
    """Return the derivative of the determinant from the singular values: for each, the product of the others."""
    u, s, vh = torch.linalg.svd(x)
    others = torch.where(torch.eye(s.shape[-1], dtype=torch.bool, device=s.device), 1, s[..., None, :]).prod(-1)
    phase = torch.linalg.det(u) * torch.linalg.det(vh)
    return phase[..., None, None] * ((u * others[..., None, :]).conj() @ vh.conj())


def _pinv(x: torch.Tensor, rtol: Any) -> torch.Tensor:
    if not (rtol is None or isinstance(rtol, int | float)):
        rtol = torch.as_tensor(as_host(rtol), device=x.device)
    return torch.linalg.pinv(x, rtol=rtol)


pinv = of_finite(_pinv, check_matrix)


def expm(x: torch.Tensor) -> torch.Tensor:
    check_square(x)
    return torch.linalg.matrix_exp(x)


def slogdet(x: torch.Tensor) -> SlogdetResult:
    check_square(x)
    sign, logabsdet = torch.linalg.slogdet(x)
    logabsdet = _nan_for_nan(logabsdet, x)
    return SlogdetResult(torch.where(logabsdet.isnan(), torch.nan, sign), logabsdet)  # torch 2.13: sign 0 for NaN


def lstsq(a: torch.Tensor, b: torch.Tensor, rcond: float | None) -> LstsqResult:
    if a.ndim != 2 or b.ndim not in (1, 2) or a.shape[0] != b.shape[0]:
        raise ValueError(f"lstsq takes (m, n) with (m,) or (m, k), not {tuple(a.shape)} with {tuple(b.shape)}")
    if not (is_finite(a) and is_finite(b)):
        raise LinAlgError(NOT_FINITE)  # torch 2.13: fails an internal assertion
    columns = b[:, None] if b.ndim == 1 else b
    if rcond is None:
        rcond = max(a.shape) * torch.finfo(a.dtype).eps
    if a.device.type == "cpu" and columns.numel():
        # the only driver that returns the singular values
        solution, residuals, rank, values = torch.linalg.lstsq(a, columns, rcond=rcond, driver="gelsd")
        if a.requires_grad:  # torch 2.13: returns them without a gradient
            values = torch.linalg.svdvals(a)
    else:
        solution, residuals, rank, values = _lstsq_by_svd(a, columns, rcond)
    return LstsqResult(solution[:, 0] if b.ndim == 1 else solution, residuals, rank, values)


def _lstsq_by_svd(a: torch.Tensor, b: torch.Tensor, rcond: float) -> tuple[torch.Tensor, ...]:
    # torch 2.11 on CUDA: only the driver for matrices of full rank
    u, s, vh = svd(a, False)
    counted = s > rcond * s.amax(dim=-1, keepdim=True) if s.numel() else s > 0
    inverse = torch.where(counted, 1 / torch.where(counted, s, 1), 0)
    if a.requires_grad or is_inside_transform():  # the gradient of the SVD is NaN where singular values are equal
        solution = torch.linalg.pinv(a, rtol=rcond) @ b
    else:
        solution = vh.mH @ (inverse[:, None] * (u.mH @ b))
    rank = counted.sum()
    full = a.shape[0] > a.shape[1] and int(rank) == a.shape[1]
    residuals = (b - a @ solution).abs().square().sum(dim=0) if full else s.new_zeros(0)
    return solution, residuals, rank, s
