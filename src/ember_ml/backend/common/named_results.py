"""Named tuples for ops that return several tensors, with the field names of the Array API."""

from typing import Any, NamedTuple

__all__ = [
    "EigResult",
    "EighResult",
    "LUResult",
    "LstsqResult",
    "QRResult",
    "SVDResult",
    "SlogdetResult",
    "SolverResult",
    "UniqueAllResult",
    "UniqueCountsResult",
    "UniqueInverseResult",
]


class SVDResult(NamedTuple):
    """``x = (U * S) @ Vh``."""

    U: Any
    S: Any
    Vh: Any


class EigResult(NamedTuple):
    """Eigenvalues, and eigenvectors as columns."""

    eigenvalues: Any
    eigenvectors: Any


class EighResult(NamedTuple):
    """Ascending eigenvalues, and eigenvectors as columns."""

    eigenvalues: Any
    eigenvectors: Any


class QRResult(NamedTuple):
    """``x = Q @ R``."""

    Q: Any
    R: Any


class SlogdetResult(NamedTuple):
    """The determinant as its sign and the logarithm of its absolute value."""

    sign: Any
    logabsdet: Any


class SolverResult(NamedTuple):
    """The solution, and 0 where it has the requested accuracy, otherwise the number of steps that were not enough."""

    x: Any
    info: Any


class LUResult(NamedTuple):
    """Both triangles in one matrix, and the row that was exchanged with each row."""

    lu: Any
    pivots: Any


class LstsqResult(NamedTuple):
    """The solution, the sums of squared residuals, the rank and the singular values."""

    solution: Any
    residuals: Any
    rank: Any
    singular_values: Any


class UniqueAllResult(NamedTuple):
    """Distinct values, where each comes first, which one each element is, and how often each comes."""

    values: Any
    indices: Any
    inverse_indices: Any
    counts: Any


class UniqueCountsResult(NamedTuple):
    """Distinct values, and how often each comes."""

    values: Any
    counts: Any


class UniqueInverseResult(NamedTuple):
    """Distinct values, and which one each element is."""

    values: Any
    inverse_indices: Any
