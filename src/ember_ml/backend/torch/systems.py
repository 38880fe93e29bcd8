"""Linear systems and determinants, on PyTorch."""

from __future__ import annotations

import torch

from ember_ml.backend.matrices import SINGULAR, check_square, check_system
from ember_ml.backend.results import SlogdetResult
from ember_ml.backend.torch.factorizations import or_nan, values_are_read
from ember_ml.errors import LinAlgError


def _settled(result: torch.Tensor, singular: torch.Tensor) -> torch.Tensor:
    """LinAlgError where a matrix was singular, or NaN where values are not checked."""
    if values_are_read():
        if singular.any():
            raise LinAlgError(SINGULAR)
        return result
    return or_nan(result, ~singular.broadcast_to(result.shape[:-2]))


def solve(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    check_system(a, b)
    # PyTorch takes some stacks of columns for a stack of vectors
    columns = b[:, None] if b.ndim == 1 else b
    stack = torch.broadcast_shapes(a.shape[:-2], columns.shape[:-2])
    result, info = torch.linalg.solve_ex(a, columns.broadcast_to(*stack, *columns.shape[-2:]))
    result = _settled(result, info != 0)
    return result[..., 0] if b.ndim == 1 else result


def inv(x: torch.Tensor) -> torch.Tensor:
    check_square(x)
    result, info = torch.linalg.inv_ex(x)
    return _settled(result, info != 0)


def solve_triangular(a: torch.Tensor, b: torch.Tensor, lower: bool) -> torch.Tensor:
    check_system(a, b)
    columns = b[:, None] if b.ndim == 1 else b
    result = torch.linalg.solve_triangular(a, columns, upper=not lower)
    result = _settled(result, (a.diagonal(0, -2, -1) == 0).any(dim=-1))
    return result[..., 0] if b.ndim == 1 else result


def det(x: torch.Tensor) -> torch.Tensor:
    check_square(x)
    return torch.linalg.det(x)


def slogdet(x: torch.Tensor) -> SlogdetResult:
    check_square(x)
    return SlogdetResult(*torch.linalg.slogdet(x))
