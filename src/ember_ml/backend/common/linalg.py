"""Check the shapes of the arguments of matrix ops, for every backend."""

from __future__ import annotations

from typing import Any

__all__ = [
    "NOT_DEFINITE",
    "NOT_FINITE",
    "SINGULAR",
    "check_linear",
    "check_matrix",
    "check_square",
    "check_system",
    "refuse_complete_qr",
]

SINGULAR = "the matrix is singular"
NOT_DEFINITE = "the matrix is not positive definite"
NOT_FINITE = "the matrix holds NaN or infinity, so it has no such factorization"


NEARLY_LARGEST = 0.999
"""Components of at least this share of the largest tie with it; the first of them decides the sign or phase."""


def order_step(precision: float) -> float:
    """Return the share of the largest eigenvalue by which real parts must differ to decide the order."""
    return precision**0.5


def check_matrix(x: Any) -> None:
    """Check that ``x`` has at least 2 dimensions."""
    if x.ndim < 2:
        raise ValueError(f"a matrix has at least 2 dimensions, not {x.ndim}")


def check_square(x: Any) -> None:
    """Check that ``x`` has as many rows as columns."""
    check_matrix(x)
    if x.shape[-1] != x.shape[-2]:
        raise ValueError(f"the matrix must be square, not {x.shape[-2]} by {x.shape[-1]}")


def refuse_complete_qr(rows: int, columns: int) -> None:
    """Raise the error for the gradient of a complete QR of more rows than columns."""
    raise TypeError(
        f"ops.qr with mode='complete' of {rows} rows and {columns} columns has no gradient, since the last "
        "columns of Q are any that fit; use mode='reduced'"
    )


def check_system(a: Any, b: Any) -> None:
    """Check that ``a`` is square, and ``b`` a vector or columns of its size."""
    check_square(a)
    if b.ndim == 0:
        raise ValueError("the right side of a system has at least 1 dimension")
    rows = b.shape[0] if b.ndim == 1 else b.shape[-2]
    if rows != a.shape[-1]:
        raise ValueError(f"a system of {a.shape[-1]} equations has a right side of {rows}")


def check_linear(weight: Any, bias: Any) -> None:
    """Check that ``weight`` is a matrix, and ``bias`` None or a vector as long as it has rows."""
    shape = weight.shape
    if len(shape) != 2 or (bias is not None and bias.shape != (shape[0],)):
        given = "no bias" if bias is None else f"a bias of {tuple(bias.shape)}"
        raise ValueError(f"a weight has shape (out, in) and a bias (out,); these are {tuple(shape)} and {given}")
