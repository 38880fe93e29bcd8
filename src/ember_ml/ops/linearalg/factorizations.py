"""Factorizations of matrices: singular values, eigenvalues, QR, Cholesky, LU.

The matrices are the last two dimensions; leading ones are stacks. Integers are lifted to float32; half precision is
an ``UnsupportedDType``. A factorization that does not exist is a ``LinAlgError``: of a matrix with NaN or infinities,
or, for :func:`cholesky`, one that is not positive definite. With value checks off the result of such a matrix is NaN.

Vectors have one sign or phase on every backend: of each eigenvector, and of each column of U in :func:`svd`, the
component of largest absolute value is real and positive; where several are within a thousandth of it, the first of
them. The diagonal of R in the :func:`qr` of complex matrices is real and not negative; that of real ones has the signs
that LAPACK's reflections leave. Where values are equal, the vectors are any that fit, and so are the columns of U and
the rows of Vh beyond the smaller side.

Gradients: of :func:`cholesky`, :func:`eigh` and :func:`eigvalsh` they are those of functions of symmetric (Hermitian)
matrices, so that they are symmetric too, though only one triangle is read. Where vectors are used, the gradient is
infinite or NaN at eigenvalues or singular values that are equal, since the vectors are then no function of the matrix;
the values alone have a gradient there, but no second one. A derivative forward takes such vectors as constant, or is
NaN. A result that depends on the phases of complex vectors has no gradient.
"""

from __future__ import annotations

from typing import Any

from ember_ml import ops
from ember_ml.backend import value_checks
from ember_ml.backend.common.linalg import refuse_complete_qr
from ember_ml.backend.common.named_results import EighResult, EigResult, LUResult, QRResult, SVDResult
from ember_ml.backend.selection import active
from ember_ml.core.dtypes import as_dtype, int64
from ember_ml.dispatch.declare import gradient, primitive
from ember_ml.dispatch.dtype_rules import FACTORIZATION
from ember_ml.ops.arrays.gradient_rules.helpers import adjoint, cast_back
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
    ``Vh`` n rows, or k of each where ``full_matrices`` is false, which is much faster for long matrices. The columns
    of ``U`` and rows of ``Vh`` beyond k are any that fit: they are constants to the gradient.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.round(ops.svd([[3.0, 0.0], [0.0, 4.0]]).S)).tolist()
    [4.0, 3.0]
    """
    ...


gradient(svd, holomorphic=False, x=lambda g, r: _svd_vjp(g, r))


@primitive(FACTORIZATION.giving("real"))
def svdvals(x: TensorLike) -> Tensor:
    """The singular values, real and descending.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.round(ops.svdvals([[3.0, 0.0], [0.0, 4.0]]))).tolist()
    [4.0, 3.0]
    """
    ...


gradient(svdvals, holomorphic=False, x=lambda g, x: _singular_values_vjp(g, x))


@primitive(FACTORIZATION.giving("own"))
def eigh(x: TensorLike) -> EighResult:
    """The eigenvalues, real and ascending, and the eigenvectors, as columns, of symmetric or Hermitian matrices.

    Only the lower triangle is read. The result is a named tuple (eigenvalues, eigenvectors).

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.round(ops.eigh([[2.0, 1.0], [1.0, 2.0]]).eigenvalues)).tolist()
    [1.0, 3.0]
    """
    ...


gradient(eigh, holomorphic=False, x=lambda g, r: _eigh_vjp(g, r))


@primitive(FACTORIZATION.giving("real"))
def eigvalsh(x: TensorLike) -> Tensor:
    """The eigenvalues, real and ascending, of symmetric or Hermitian matrices; only the lower triangle is read.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.round(ops.eigvalsh([[2.0, 1.0], [1.0, 2.0]]))).tolist()
    [1.0, 3.0]
    """
    ...


gradient(eigvalsh, holomorphic=False, x=lambda g, x: _between(eigh(x).eigenvectors, g))


@primitive(FACTORIZATION.giving("own"))
def eig(x: TensorLike) -> EigResult:
    """The eigenvalues and the eigenvectors, as columns, of square matrices, always complex.

    They are in the order of their real parts, and of their imaginary parts where those agree to half of the digits.
    The result is a named tuple (eigenvalues, eigenvectors).

    >>> from ember_ml import ops
    >>> values = ops.eig([[0.0, -1.0], [1.0, 0.0]]).eigenvalues
    >>> sorted(ops.to_numpy(ops.round(ops.imag(values))).tolist())
    [-1.0, 1.0]
    """
    ...


gradient(eig, holomorphic=False, x=lambda g, r, _x: cast_back(_eig_vjp(g, r), _x))


@primitive(FACTORIZATION.giving("complex"))
def eigvals(x: TensorLike) -> Tensor:
    """The eigenvalues of square matrices, always complex, in the order in which :func:`eig` has them.

    >>> from ember_ml import ops
    >>> sorted(ops.to_numpy(ops.round(ops.imag(ops.eigvals([[0.0, -1.0], [1.0, 0.0]])))).tolist())
    [-1.0, 1.0]
    """
    ...


gradient(eigvals, holomorphic=False, x=lambda g, x: cast_back(_eigenvalues_vjp(g, eig(x).eigenvectors), x))


@primitive(FACTORIZATION.giving("own"))
def qr(x: TensorLike, mode: str = "reduced") -> QRResult:
    """The QR decomposition ``x = Q @ R``, Q with orthonormal columns, R upper triangular, as a named tuple (Q, R).

    With m rows, n columns, k the smaller number: ``mode="reduced"`` gives Q (m, k) and R (k, n), ``"complete"`` Q (m,
    m) and R (m, n). NaN in gives NaN out. There is a gradient where the first k columns of ``x`` are independent; the
    complete Q of more rows than columns has none, since its last columns are any that fit.

    >>> from ember_ml import ops
    >>> q, r = ops.qr([[0.0, 2.0], [3.0, 0.0]])
    >>> ops.to_numpy(ops.round(ops.matmul(q, r))).tolist()
    [[0.0, 2.0], [3.0, 0.0]]
    """
    ...


gradient(qr, holomorphic=False, x=lambda g, r, x, mode: _qr_vjp(g, r, x, mode))


@primitive(FACTORIZATION)
def cholesky(x: TensorLike, upper: bool = False) -> Tensor:
    """The lower triangular L with ``x = L @ L^H`` of positive definite ``x``; with ``upper`` its conjugate transpose.

    Only the lower triangle of ``x`` is read. ``LinAlgError`` where it is not positive definite.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.cholesky([[4.0, 2.0], [2.0, 5.0]])).tolist()
    [[2.0, 0.0], [1.0, 2.0]]
    """
    ...


gradient(
    cholesky,
    holomorphic=False,
    x=lambda g, r, upper: _cholesky_vjp(adjoint(g), adjoint(r)) if upper else _cholesky_vjp(g, r),
)


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


gradient(lu_factor, holomorphic=False, x=lambda g, r: _lu_vjp(g[0], r[0], r[1]))


def order_of_rows(pivots: Tensor, size: int) -> Tensor:
    """Return the order into which exchanges of each row with the one at ``pivots`` bring ``size`` rows."""
    places = ops.arange(size, dtype=int64, device=ops.get_device(pivots))
    order = ops.broadcast_to(places, (*pivots.shape[:-1], size))
    for k in range(pivots.shape[-1]):  # emberlint: ignore[EMB801] each swap follows the last
        other = ops.cast(pivots[..., k : k + 1], int64)
        here, there = order[..., k : k + 1], ops.take_along_axis(order, other, axis=-1)
        order = ops.where(ops.equal(places, k), there, ops.where(ops.equal(places, other), here, order))
    return order


def _columns(x: Tensor) -> Tensor:
    """Return numbers, one for each column of a matrix."""
    return ops.expand_dims(x, -2)


def _rows(x: Tensor) -> Tensor:
    """Return numbers, one for each row of a matrix."""
    return ops.expand_dims(x, -1)


def _identity(x: Tensor) -> Tensor:
    return ops.eye(x.shape[-1], dtype=as_dtype(x.dtype), device=ops.get_device(x))


def _scaled_product(left: Tensor, numbers: Tensor, right: Tensor) -> Tensor:
    """Return ``left @ diag(numbers) @ right``."""
    return ops.matmul(ops.multiply(left, _columns(numbers)), right)


def _between(vectors: Tensor, values: Tensor) -> Tensor:
    return _scaled_product(vectors, values, adjoint(vectors))


def _over_gaps(x: Tensor, gaps: Tensor, used: Tensor) -> Tensor:
    """Divide ``x`` by the gaps between values, off the diagonal; a gap of 0 only for pairs with a vector that is used.

    There even zeros are divided, to NaN: the terms of both vectors may cancel, but what they are the limit of is not 0.
    Where there is a gap zeros are divided too: a derivative forward is the derivative of this by ``x``, taken at 0.
    """
    is_divided = ops.logical_or(ops.logical_or(_columns(used), _rows(used)), ops.not_equal(gaps, 0))
    is_divided = ops.logical_and(is_divided, ops.equal(_identity(gaps), 0))
    return ops.where(is_divided, ops.divide(x, ops.where(is_divided, gaps, 1)), 0)


def _is_used(g: Tensor) -> Tensor:
    """Return for each vector, a column of ``g``, whether its gradient has an element that is not 0."""
    return ops.any(ops.not_equal(g, 0), axis=-2)


def _check_phases(op: str, diagonal: Tensor) -> None:
    """Raise where the gradient of vectors, times the vectors, shows that the result depends on their phases."""
    if as_dtype(diagonal.dtype).kind != "complex" or not value_checks.enabled or active().is_traced(diagonal):
        return
    allowed = ops.add(ops.multiply(ops.abs(diagonal), 1e-2), 1e-2)  # PyTorch's tolerance
    if ops.item(ops.any(ops.greater(ops.abs(ops.imag(diagonal)), allowed))):
        raise ValueError(
            f"the result depends on the phases of the vectors that ops.{op} gives, which are arbitrary, so that it has "
            "no gradient; use what does not change when a vector is multiplied with a number of size 1"
        )


def _skew(x: Tensor) -> Tensor:
    return ops.subtract(x, adjoint(x))


def _svd_vjp(g: Any, r: Any) -> Tensor:
    (u, s, vh), (gu, gs, gvh) = r, g
    size = s.shape[-1]
    rows, columns = u.shape[-2], vh.shape[-1]
    u, gu, v, gv = u[..., :size], gu[..., :size], adjoint(vh[..., :size, :]), adjoint(gvh[..., :size, :])
    of_u, of_v = ops.matmul(adjoint(u), gu), ops.matmul(adjoint(v), gv)
    _check_phases("svd", ops.add(ops.diagonal(of_u), ops.diagonal(of_v)))
    # the difference of squares, as a product that keeps small gaps
    gaps = ops.multiply(ops.subtract(_columns(s), _rows(s)), ops.add(_columns(s), _rows(s)))
    inner = ops.add(ops.multiply(_skew(of_u), _columns(s)), ops.multiply(_rows(s), _skew(of_v)))
    used = ops.logical_or(_is_used(gu), _is_used(gv))
    middle = ops.add(_over_gaps(inner, gaps, used), ops.multiply(_identity(s), _columns(gs)))
    if as_dtype(u.dtype).kind == "complex":
        turned = _columns(ops.multiply(ops.imag(ops.diagonal(of_u)), 1j))
        middle = ops.add(middle, ops.multiply(_identity(u), _over(turned, s)))
    found = ops.matmul(ops.matmul(u, middle), adjoint(v))
    if rows > size:
        outside = ops.subtract(gu, ops.matmul(u, of_u))
        found = ops.add(found, ops.matmul(_over(outside, s), adjoint(v)))
    if columns > size:
        outside = ops.subtract(gv, ops.matmul(v, of_v))
        found = ops.add(found, ops.matmul(u, adjoint(_over(outside, s))))
    return found


def _over(x: Tensor, s: Tensor) -> Tensor:
    """Divide the columns of ``x`` by singular values; where no vector was used, values of 0 do not matter."""
    is_used = ops.any(ops.not_equal(x, 0), axis=(-2, -1), keepdims=True)
    is_divided = ops.logical_or(is_used, ops.not_equal(_columns(s), 0))
    return ops.where(is_divided, ops.divide(x, ops.where(is_divided, _columns(s), 1)), 0)


def _singular_values_vjp(g: Tensor, x: Tensor) -> Tensor:
    u, _, vh = svd(x, False)
    return _scaled_product(u, g, vh)


def _eigh_vjp(g: Any, r: Any) -> Tensor:
    (values, vectors), (g_values, g_vectors) = r, g
    inner = ops.matmul(adjoint(vectors), g_vectors)
    _check_phases("eigh", ops.diagonal(inner))
    gaps = ops.subtract(_columns(values), _rows(values))
    between = _over_gaps(ops.multiply(_skew(inner), 0.5), gaps, _is_used(g_vectors))
    middle = ops.add(between, ops.multiply(_identity(values), _rows(g_values)))
    return ops.matmul(ops.matmul(vectors, middle), adjoint(vectors))


def _eig_vjp(g: Any, r: Any) -> Tensor:
    (values, vectors), (g_values, g_vectors) = r, g
    turned = adjoint(vectors)
    inner = ops.matmul(turned, g_vectors)
    diagonal = ops.diagonal(inner)
    _check_phases("eig", diagonal)
    # the vectors keep their length
    inner = ops.subtract(inner, ops.multiply(ops.matmul(turned, vectors), _columns(ops.real(diagonal))))
    gaps = ops.conj(ops.subtract(_columns(values), _rows(values)))
    middle = ops.add(_over_gaps(inner, gaps, _is_used(g_vectors)), ops.multiply(_identity(values), _rows(g_values)))
    return ops.solve(turned, ops.matmul(middle, turned))


def _eigenvalues_vjp(g: Tensor, vectors: Tensor) -> Tensor:
    turned = adjoint(vectors)
    return ops.solve(turned, ops.multiply(_rows(g), turned))


def _qr_vjp(g: Any, r: Any, x: Tensor, mode: str) -> Tensor:
    (q, upper), (gq, gr) = r, g
    rows, columns = x.shape[-2:]
    if rows >= columns:
        if rows > columns and mode == "complete":
            refuse_complete_qr(rows, columns)
        return _independent_qr_vjp(gq, gr, q, upper)
    # x = [a | b] and R = [T | Q^H b], so that b is a further way to Q
    first, rest = gr[..., :rows], gr[..., rows:]
    gq = ops.add(gq, ops.matmul(x[..., rows:], adjoint(rest)))
    return ops.concatenate([_independent_qr_vjp(gq, first, q, upper[..., :rows]), ops.matmul(q, rest)], axis=-1)


def _independent_qr_vjp(gq: Tensor, gr: Tensor, q: Tensor, upper: Tensor) -> Tensor:
    """Return the gradient of QR for no more columns than rows."""
    inner = ops.subtract(ops.matmul(gr, adjoint(upper)), ops.matmul(adjoint(q), gq))
    left = ops.add(gq, ops.matmul(q, _complete_hermitian(inner)))
    return adjoint(ops.solve_triangular(upper, adjoint(left)))


def _complete_hermitian(x: Tensor) -> Tensor:
    """Return the Hermitian matrix that has the upper triangle of ``x``."""
    above = ops.triu(x, 1)
    return ops.add(ops.add(above, adjoint(above)), ops.multiply(_identity(x), ops.real(x)))


def _cholesky_vjp(g: Tensor, factor: Tensor) -> Tensor:
    turned = adjoint(factor)
    inner = ops.multiply(_complete_hermitian(adjoint(ops.matmul(turned, g))), 0.5)
    half = ops.solve_triangular(turned, inner)
    return adjoint(ops.solve_triangular(turned, adjoint(half)))


def _lu_vjp(g: Tensor, lu: Tensor, pivots: Any) -> Tensor:
    rows, columns = lu.shape[-2:]
    size = min(rows, columns)
    square = lu[..., :size, :size]
    lower, upper = adjoint(ops.add(ops.tril(square, -1), _identity(square))), adjoint(ops.triu(square))
    below, right = lu[..., size:, :size], lu[..., :size, size:]
    g_square, g_below, g_right = g[..., :size, :size], g[..., size:, :size], g[..., :size, size:]
    of_lower = ops.subtract(ops.matmul(lower, ops.tril(g_square, -1)), ops.matmul(g_right, adjoint(right)))
    of_upper = ops.subtract(ops.matmul(ops.triu(g_square), upper), ops.matmul(adjoint(below), g_below))
    inner = ops.add(ops.tril(of_lower, -1), ops.triu(of_upper))
    found = _solve_from_right(ops.solve_triangular(lower, inner), upper)
    if rows > size:
        found = ops.concatenate([found, _solve_from_right(g_below, upper)], axis=-2)
    if columns > size:
        found = ops.concatenate([found, ops.solve_triangular(lower, g_right)], axis=-1)
    order = ops.argsort(order_of_rows(pivots, rows), axis=-1)
    return ops.take_along_axis(found, ops.broadcast_to(_rows(order), tuple(found.shape)), axis=-2)


def _solve_from_right(x: Tensor, lower: Tensor) -> Tensor:
    """Return ``x`` times the inverse of a lower triangle."""
    return ops.matrix_transpose(ops.solve_triangular(ops.matrix_transpose(lower), ops.matrix_transpose(x)))
