"""Factorizations of matrices: singular values, eigenvalues, QR, Cholesky, LU.

The matrices are the last two dimensions; leading ones are stacks. Integers are lifted to float32; half precision is
an ``UnsupportedDType``. A factorization that does not exist is a ``LinAlgError``: of a matrix with NaN or infinities,
or, for :func:`cholesky`, one that is not positive definite. With value checks off the result of such a matrix is NaN.
Signs (and phases) of singular vectors, eigenvectors and QR factors are whatever the library chose.
"""

from __future__ import annotations

from ember_ml.backend.results import EighResult, EigResult, LUResult, QRResult, SVDResult
from ember_ml.ops.declare import primitive
from ember_ml.ops.rules import FACTORIZATION
from ember_ml.typing import Tensor, TensorLike

__all__ = [
    "cholesky",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "lu_factor",
    "qr",
    "svd",
    "svdvals",
]


@primitive(FACTORIZATION.giving("own"))
def svd(x: TensorLike, full_matrices: bool = True) -> SVDResult:
    """The singular value decomposition ``x = U @ diag(S) @ Vh``, as a named tuple (U, S, Vh).

    ``S`` is real and descends. For a matrix of m rows and n columns, k the smaller number: ``U`` has m columns and
    ``Vh`` n rows, or k of each where ``full_matrices`` is false, which is much faster for long matrices.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.round(ops.svd([[3.0, 0.0], [0.0, 4.0]]).S)).tolist()
    [4.0, 3.0]
    """
    ...


@primitive(FACTORIZATION.giving("real"))
def svdvals(x: TensorLike) -> Tensor:
    """The singular values, real and descending.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.round(ops.svdvals([[3.0, 0.0], [0.0, 4.0]]))).tolist()
    [4.0, 3.0]
    """
    ...


@primitive(FACTORIZATION.giving("own"))
def eigh(x: TensorLike) -> EighResult:
    """The eigenvalues, real and ascending, and the eigenvectors, as columns, of symmetric or Hermitian matrices.

    Only the lower triangle is read. The result is a named tuple (eigenvalues, eigenvectors).

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.round(ops.eigh([[2.0, 1.0], [1.0, 2.0]]).eigenvalues)).tolist()
    [1.0, 3.0]
    """
    ...


@primitive(FACTORIZATION.giving("real"))
def eigvalsh(x: TensorLike) -> Tensor:
    """The eigenvalues, real and ascending, of symmetric or Hermitian matrices; only the lower triangle is read.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.round(ops.eigvalsh([[2.0, 1.0], [1.0, 2.0]]))).tolist()
    [1.0, 3.0]
    """
    ...


@primitive(FACTORIZATION.giving("own"))
def eig(x: TensorLike) -> EigResult:
    """The eigenvalues and the eigenvectors, as columns, of square matrices, always complex, in no particular order.

    The result is a named tuple (eigenvalues, eigenvectors).

    >>> from ember_ml import ops
    >>> values = ops.eig([[0.0, -1.0], [1.0, 0.0]]).eigenvalues
    >>> sorted(ops.to_numpy(ops.round(ops.imag(values))).tolist())
    [-1.0, 1.0]
    """
    ...


@primitive(FACTORIZATION.giving("complex"))
def eigvals(x: TensorLike) -> Tensor:
    """The eigenvalues of square matrices, always complex, in no particular order.

    >>> from ember_ml import ops
    >>> sorted(ops.to_numpy(ops.round(ops.imag(ops.eigvals([[0.0, -1.0], [1.0, 0.0]])))).tolist())
    [-1.0, 1.0]
    """
    ...


@primitive(FACTORIZATION.giving("own"))
def qr(x: TensorLike, mode: str = "reduced") -> QRResult:
    """The QR decomposition ``x = Q @ R``, Q with orthonormal columns, R upper triangular, as a named tuple (Q, R).

    With m rows, n columns, k the smaller number: ``mode="reduced"`` gives Q (m, k) and R (k, n), ``"complete"`` Q (m,
    m) and R (m, n). NaN in gives NaN out.

    >>> from ember_ml import ops
    >>> q, r = ops.qr([[0.0, 2.0], [3.0, 0.0]])
    >>> ops.to_numpy(ops.round(ops.matmul(q, r))).tolist()
    [[0.0, 2.0], [3.0, 0.0]]
    """
    ...


@primitive(FACTORIZATION)
def cholesky(x: TensorLike, upper: bool = False) -> Tensor:
    """The lower triangular L with ``x = L @ L^H`` of positive definite ``x``; with ``upper`` its conjugate transpose.

    Only the lower triangle of ``x`` is read. ``LinAlgError`` where it is not positive definite.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.cholesky([[4.0, 2.0], [2.0, 5.0]])).tolist()
    [[2.0, 0.0], [1.0, 2.0]]
    """
    ...


@primitive(FACTORIZATION.giving("own"))
def lu_factor(x: TensorLike) -> LUResult:
    """The LU decomposition with row exchanges, as a named tuple (lu, pivots) for :func:`lu_solve`.

    ``lu`` holds U in its upper triangle and L, without its diagonal of ones, below; ``pivots`` are int64: row i was
    exchanged with row ``pivots[i]``, in that order. Singular matrices have such a decomposition too; U then has a
    zero on its diagonal.

    >>> from ember_ml import ops
    >>> lu, pivots = ops.lu_factor([[1.0, 2.0], [4.0, 4.0]])
    >>> ops.to_numpy(lu).tolist(), ops.to_numpy(pivots).tolist()
    ([[4.0, 4.0], [0.25, 1.0]], [1, 1])
    """
    ...
