"""Linear systems and what comes of them: solutions, inverses, determinants, rank, powers.

The matrices are the last two dimensions; leading ones are stacks. Integers are lifted to float32; half precision is
an ``UnsupportedDType``. A singular matrix is a ``LinAlgError``; with value checks off its result is NaN. NaN in gives
NaN out.
"""

from __future__ import annotations

import math
from typing import Any

from ember_ml import ops
from ember_ml.backend import value_checks as checks
from ember_ml.backend.common.linalg import NOT_FINITE
from ember_ml.backend.common.named_results import LstsqResult, SlogdetResult
from ember_ml.backend.selection import active
from ember_ml.core import dtypes as dt
from ember_ml.dispatch.arguments import bring
from ember_ml.dispatch.declare import derived, gradient, primitive
from ember_ml.dispatch.dtype_rules import CONTRACTION, FACTORIZATION
from ember_ml.errors import LinAlgError
from ember_ml.ops.arrays.gradient_rules.helpers import adjoint, products_of_others
from ember_ml.ops.linearalg.factorizations import order_of_rows
from ember_ml.tensor.var import read_if_known
from ember_ml.typing import IndexLike, Tensor, TensorLike

__all__ = [
    "cholesky_inverse",
    "det",
    "expm",
    "inv",
    "logdet",
    "lstsq",
    "lu_solve",
    "matrix_power",
    "matrix_rank",
    "pinv",
    "slogdet",
    "solve",
    "solve_triangular",
]


@primitive(FACTORIZATION)
def solve(a: TensorLike, b: TensorLike) -> Tensor:
    """The solution x of ``a @ x = b``; ``b`` is one vector where it is 1-D, else columns; leading dimensions broadcast.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.solve([[2.0, 0.0], [0.0, 4.0]], [2.0, 2.0])).tolist()
    [1.0, 0.5]
    """
    ...


gradient(
    solve,
    a=lambda g, r, a, _b: _left_side_vjp(_right_side_vjp(solve, g, a, _b), r, _b),
    b=lambda g, a, _b: _restore_vector(_right_side_vjp(solve, g, a, _b), _b),
)


@primitive(FACTORIZATION)
def solve_triangular(a: TensorLike, b: TensorLike, lower: bool = False) -> Tensor:
    """The solution x of ``a @ x = b`` for a triangular ``a``, of which only that triangle is read.

    ``b`` is one vector where it is 1-D, else columns; leading dimensions broadcast. A zero on the diagonal is a
    ``LinAlgError``.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.solve_triangular([[2.0, 0.0], [1.0, 1.0]], [2.0, 3.0], lower=True)).tolist()
    [1.0, 2.0]
    """
    ...


gradient(
    solve_triangular,
    a=lambda g, r, a, _b, lower: (ops.tril if lower else ops.triu)(
        _left_side_vjp(_right_side_vjp(solve_triangular, g, a, _b, not lower), r, _b)
    ),
    b=lambda g, a, _b, lower: _restore_vector(_right_side_vjp(solve_triangular, g, a, _b, not lower), _b),
)


@primitive(FACTORIZATION)
def inv(x: TensorLike) -> Tensor:
    """The inverses of square matrices.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.inv([[2.0, 0.0], [0.0, 4.0]])).tolist()
    [[0.5, 0.0], [0.0, 0.25]]
    """
    ...


gradient(
    inv,
    x=lambda g, r: ops.negative(
        ops.matmul(ops.matmul(ops.matrix_transpose(r), g), ops.matrix_transpose(r)),
    ),
)


@primitive(FACTORIZATION)
def det(x: TensorLike) -> Tensor:
    """The determinants of square matrices; 0 for a singular one, 1 for a matrix of no rows.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.det([[2.0, 0.0], [0.0, 4.0]])).tolist()
    8.0
    """
    ...


gradient(det, x=lambda g, r, x: ops.multiply(ops.expand_dims(g, (-2, -1)), _cofactors(x, r)))


@primitive(FACTORIZATION.giving("own"))
def slogdet(x: TensorLike) -> SlogdetResult:
    """The sign and the logarithm of the absolute value of the determinants, as a named tuple (sign, logabsdet).

    A singular matrix gives 0 and minus infinity. The sign of a complex determinant is a complex number of size 1.

    >>> from ember_ml import ops
    >>> sign, logabsdet = ops.slogdet([[0.0, 1.0], [1.0, 0.0]])
    >>> ops.to_numpy(sign).tolist(), ops.to_numpy(logabsdet).tolist()
    (-1.0, 0.0)
    """
    ...


gradient(slogdet, holomorphic=False, x=lambda g, r, x: _slogdet_vjp(g, r[0], x))


@derived(FACTORIZATION)
def logdet(x: TensorLike) -> Tensor:
    """The logarithm of the determinants; NaN where one is negative, minus infinity where it is 0.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.logdet([[1.0, 0.0], [0.0, 1.0]])).tolist()
    0.0
    """
    sign, logabsdet = slogdet(x)
    if ops.dtype(x) in dt.COMPLEX:
        return ops.add(logabsdet, ops.log(sign))
    return ops.where(ops.less(sign, 0), float("nan"), logabsdet)


@derived(FACTORIZATION)
def pinv(x: TensorLike, rtol: float | Tensor | None = None) -> Tensor:
    """The pseudo-inverses of matrices, by their singular values.

    Singular values up to ``rtol`` times the largest count as 0; by default that is the larger number of rows or
    columns times the precision of the dtype. ``rtol`` may be a tensor, one value per matrix of the stack.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.pinv([[2.0, 0.0], [0.0, 0.0]])).tolist()
    [[0.5, 0.0], [0.0, 0.0]]
    """
    u, s, vh = ops.svd(x, False)
    counted = _above_cutoff(s, x, rtol)
    inverse = ops.where(counted, ops.divide(1.0, ops.where(counted, s, 1.0)), 0.0)
    left = ops.multiply(adjoint(vh), ops.expand_dims(inverse, -2))
    return ops.matmul(left, adjoint(u))


gradient(pinv, holomorphic=False, x=lambda g, r, x: _pinv_vjp(g, r, x))


@derived(FACTORIZATION.giving("int64"))
def matrix_rank(x: TensorLike, rtol: float | Tensor | None = None) -> Tensor:
    """The number of singular values above ``rtol`` times the largest, as int64.

    By default ``rtol`` is the larger number of rows or columns times the precision of the dtype.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.matrix_rank([[1.0, 2.0], [2.0, 4.0]])).tolist()
    1
    """
    return ops.sum(ops.cast(_above_cutoff(ops.svdvals(x), x, rtol), dt.int64), axis=-1)


def _above_cutoff(s: Tensor, x: Tensor, rtol: float | Tensor | None) -> Tensor:
    """Return which singular values ``s`` of ``x`` count, by the tolerance."""
    if rtol is None:
        rtol = max(x.shape[-2:]) * ops.finfo(ops.dtype(s)).eps
    elif not isinstance(rtol, int | float):
        rtol = ops.expand_dims(bring(rtol, active()), -1)
    if s.shape[-1] == 0:
        return ops.greater(s, 0)
    return ops.greater(s, ops.multiply(ops.max(s, axis=-1, keepdims=True), rtol))


@derived(CONTRACTION)
def matrix_power(x: TensorLike, n: int) -> Tensor:
    """``x`` multiplied with itself ``n`` times; the identity for 0, powers of the inverse below 0.

    Integers stay integers; their negative powers are a ``TypeError``.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.matrix_power([[1, 1], [0, 1]], 5)).tolist()
    [[1, 5], [0, 1]]
    """
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ValueError(f"matrix_power takes square matrices, not {tuple(x.shape)}")
    if not isinstance(n, int):
        raise TypeError(f"the power of a matrix is an integer, not {n!r}")
    dtype = ops.dtype(x)
    if n == 0:
        identity = ops.eye(x.shape[-1], dtype=dtype, device=ops.get_device(x))
        return ops.broadcast_to(identity, tuple(x.shape))
    if n < 0:
        if dtype in dt.INTEGERS:
            raise TypeError(f"a negative power of {dtype} matrices is not made of integers; cast them to a float first")
        x, n = inv(x), -n
    result: Any = None
    while True:
        if n & 1:
            result = x if result is None else ops.matmul(result, x)
        n >>= 1
        if not n:
            return result
        x = ops.matmul(x, x)


# The coefficients of the Padé approximation of exp, and the largest norm at which it has the dtype's full precision.
_SINGLE = ((17297280.0, 8648640.0, 1995840.0, 277200.0, 25200.0, 1512.0, 56.0, 1.0), 3.925724783138660)
_DOUBLE = (
    (
        *(64764752532480000.0, 32382376266240000.0, 7771770303897600.0, 1187353796428800.0, 129060195264000.0),
        *(10559470521600.0, 670442572800.0, 33522128640.0, 1323241920.0, 40840800.0, 960960.0, 16380.0, 182.0, 1.0),
    ),
    5.371920351148152,
)
_MOST_SQUARINGS = 32  # where a traced function cannot know how many are needed


@derived(FACTORIZATION)
def expm(x: TensorLike) -> Tensor:
    """The exponential of square matrices, the sum of ``x^k / k!``: by scaling, a Padé approximation, and squaring.

    A compiled function on NumPy or MLX scales by at most 2 to the 32.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.expm([[0.0, 1.0], [0.0, 0.0]])).tolist()
    [[1.0, 1.0], [0.0, 1.0]]
    """
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ValueError(f"expm takes square matrices, not {tuple(x.shape)}")
    if 0 in x.shape:
        return x
    coefficients, reach = _DOUBLE if ops.finfo(ops.dtype(x)).bits == 64 else _SINGLE
    halvings = _halvings(ops.stop_gradient(x), len(coefficients) - 1, reach)
    x = ops.multiply(x, ops.exp2(ops.negative(halvings)))
    square = ops.matmul(x, x)
    power = ops.eye(x.shape[-1], dtype=ops.dtype(x), device=ops.get_device(x))
    odd, even = ops.multiply(power, coefficients[1]), ops.multiply(power, coefficients[0])
    for k in range(2, len(coefficients), 2):
        power = square if k == 2 else ops.matmul(power, square)
        even = ops.add(even, ops.multiply(power, coefficients[k]))
        odd = ops.add(odd, ops.multiply(power, coefficients[k + 1]))
    odd = ops.matmul(x, odd)
    result = solve(ops.subtract(even, odd), ops.add(even, odd))
    most = read_if_known(ops.max(halvings), active())
    for k in range(_MOST_SQUARINGS if most is None else int(most)):
        result = ops.where(ops.less(k, halvings), ops.matmul(result, result), result)
    return result


def _halvings(x: Tensor, degree: int, reach: float) -> Tensor:
    """Return how often to halve ``x`` for a Padé approximation, after Al-Mohy and Higham 2009.

    By the norms of its powers rather than by its own, which of a matrix far from normal is much larger: what is halved
    too often loses precision when it is squared again.
    """

    def log2(norm: Tensor) -> Tensor:
        return ops.log2(ops.maximum(norm, 2.0**-120))

    own = log2(ops.matrix_norm(x, True, 1))
    small = ops.multiply(x, ops.exp2(ops.negative(own)))  # of norm 1, so that its powers do not overflow
    fourth = ops.matmul(ops.matmul(small, small), ops.matmul(small, small))
    sixth = ops.matmul(fourth, ops.matmul(small, small))
    of_powers = ops.maximum(
        ops.divide(log2(ops.matrix_norm(fourth, True, 1)), 4.0), ops.divide(log2(ops.matrix_norm(sixth, True, 1)), 6.0)
    )
    most = ops.maximum(ops.ceil(ops.subtract(own, math.log2(reach))), 0.0)
    fewest = ops.clip(ops.ceil(ops.subtract(ops.add(own, of_powers), math.log2(reach))), 0.0, most)
    # so few may be too few where terms of the approximation cancel, which the powers of the absolute values bound
    sizes = ops.multiply(ops.abs(x), ops.exp2(ops.negative(fewest)))
    row = ops.ones((*x.shape[:-2], 1, x.shape[-1]), dtype=ops.dtype(sizes), device=ops.get_device(x))
    for _ in range(2 * degree + 1):
        row = ops.matmul(row, sizes)
    error = ops.subtract(log2(ops.max(row, axis=-1, keepdims=True)), ops.subtract(own, fewest))
    known = math.log2(math.comb(2 * degree, degree) * math.factorial(2 * degree + 1) * ops.finfo(ops.dtype(x)).eps / 2)
    more = ops.maximum(ops.ceil(ops.divide(ops.subtract(error, known), 2.0 * degree)), 0.0)
    found = ops.minimum(ops.add(fewest, more), most)
    return ops.where(ops.isfinite(found), found, ops.where(ops.isfinite(most), most, 0.0))


@derived(FACTORIZATION)
def cholesky_inverse(x: TensorLike, upper: bool = False) -> Tensor:
    """The inverse of the matrix whose Cholesky factor is ``x``: of ``x @ x^H``, or with ``upper`` of ``x^H @ x``.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.cholesky_inverse([[2.0, 0.0], [0.0, 4.0]])).tolist()
    [[0.25, 0.0], [0.0, 0.0625]]
    """
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ValueError(f"a Cholesky factor is square, not {tuple(x.shape)}")
    identity = ops.eye(x.shape[-1], dtype=ops.dtype(x), device=ops.get_device(x))
    inverse = solve_triangular(x, identity, lower=not upper)
    return ops.matmul(inverse, adjoint(inverse)) if upper else ops.matmul(adjoint(inverse), inverse)


@derived(FACTORIZATION)
def lu_solve(lu: TensorLike, pivots: IndexLike, b: TensorLike) -> Tensor:
    """The solution x of ``a @ x = b``, where ``lu`` and ``pivots`` are :func:`lu_factor` of ``a``.

    ``b`` is one vector where it is 1-D, else columns; leading dimensions broadcast.

    >>> from ember_ml import ops
    >>> lu, pivots = ops.lu_factor([[1.0, 2.0], [4.0, 4.0]])
    >>> ops.to_numpy(ops.lu_solve(lu, pivots, [3.0, 8.0])).tolist()
    [1.0, 1.0]
    """
    if lu.ndim < 2 or lu.shape[-1] != lu.shape[-2]:
        raise ValueError(f"lu_solve takes the LU decomposition of square matrices, not {tuple(lu.shape)}")
    size = lu.shape[-1]
    if b.ndim == 1:
        return ops.squeeze(lu_solve(lu, pivots, ops.expand_dims(b, -1)), axis=-1)
    order = order_of_rows(pivots, size)
    stack = ops.broadcast_shapes(tuple(lu.shape[:-2]), tuple(b.shape[:-2]))
    b = ops.broadcast_to(b, (*stack, *b.shape[-2:]))
    order = ops.broadcast_to(ops.expand_dims(order, -1), (*stack, size, b.shape[-1]))
    b = ops.take_along_axis(b, order, axis=-2)
    identity = ops.eye(size, dtype=ops.dtype(lu), device=ops.get_device(lu))
    b = solve_triangular(ops.add(ops.tril(lu, -1), identity), b, lower=True)
    return solve_triangular(lu, b, lower=False)


@derived(FACTORIZATION.giving("own"))
def lstsq(a: TensorLike, b: TensorLike, rcond: float | None = None) -> LstsqResult:
    """The x that minimizes the norm of ``b - a @ x``, the shortest where several do; ``a`` is 2-D, ``b`` 1-D or 2-D.

    The result is a named tuple (solution, residuals, rank, singular_values): the sums of squared residuals are empty
    where the rank is below the number of columns or there are not more rows than columns; the rank is int64. Singular
    values up to ``rcond`` times the largest count as 0; by default the larger number of rows or columns times the
    precision of the dtype.

    >>> from ember_ml import ops
    >>> x = ops.lstsq([[1.0, 1.0], [1.0, 2.0], [1.0, 3.0]], [1.0, 2.0, 3.0]).solution
    >>> [round(value, 4) + 0.0 for value in ops.to_numpy(x).tolist()]
    [0.0, 1.0]
    """
    if a.ndim != 2 or b.ndim not in (1, 2) or a.shape[0] != b.shape[0]:
        raise ValueError(f"lstsq takes (m, n) with (m,) or (m, k), not {tuple(a.shape)} with {tuple(b.shape)}")
    if checks.enabled and not active().is_traced(b) and not ops.item(ops.all(ops.isfinite(b))):
        raise LinAlgError(NOT_FINITE)
    rows, columns = a.shape
    right = b if b.ndim == 2 else ops.expand_dims(b, -1)
    small, rotated = a, right
    if rows > columns:  # what is left to decompose is then a small square
        q, small = ops.qr(a)
        rotated = ops.matmul(adjoint(q), right)
    u, s, vh = ops.svd(small, False)
    counted = _above_cutoff(s, a, rcond)
    inverse = ops.where(counted, ops.divide(1.0, ops.where(counted, s, 1.0)), 0.0)
    solution = ops.matmul(adjoint(vh), ops.multiply(ops.expand_dims(inverse, -1), ops.matmul(adjoint(u), rotated)))
    rank = ops.sum(ops.cast(counted, dt.int64))
    if rows > columns and int(ops.item(rank)) == columns:
        difference = ops.abs(ops.subtract(right, ops.matmul(a, solution)))
        residuals = ops.sum(ops.square(difference), axis=0)
    else:
        residuals = ops.zeros((0,), dtype=ops.dtype(s), device=ops.get_device(a))
    return LstsqResult(solution if b.ndim == 2 else ops.squeeze(solution, axis=-1), residuals, rank, s)


gradient(
    lstsq,
    holomorphic=False,
    a=lambda g, r, a, b, rcond: _lstsq_left_vjp(g, r, a, b, rcond),
    b=lambda g, r, a, b, rcond: _lstsq_right_vjp(g, r, a, b, rcond),
)


def _as_columns(x: Tensor, b: Any) -> Tensor:
    """Return ``x`` as columns, where the right side ``b`` of its system was one vector."""
    return ops.expand_dims(x, -1) if len(b.shape) == 1 else x


def _restore_vector(x: Tensor, b: Any) -> Tensor:
    return ops.squeeze(x, axis=-1) if len(b.shape) == 1 else x


def _right_side_vjp(solver: Any, g: Tensor, a: Tensor, b: Any, *options: Any) -> Tensor:
    """Return the gradient of the right side of a system, as columns."""
    return solver(ops.matrix_transpose(a), _as_columns(g, b), *options)


def _left_side_vjp(of_right: Tensor, solution: Tensor, b: Any) -> Tensor:
    return ops.negative(ops.matmul(of_right, ops.matrix_transpose(_as_columns(solution, b))))


def _cofactors(x: Tensor, result: Tensor) -> Tensor:
    """Return the derivative of the determinant, ``result``, of ``x``; of singular matrices too."""
    if active().is_traced(result) or ops.item(ops.all(ops.not_equal(result, 0))):
        return ops.multiply(ops.expand_dims(result, (-2, -1)), ops.matrix_transpose(inv(x)))
    u, s, vh = ops.svd(x, False)
    phase = ops.expand_dims(ops.multiply(det(u), det(vh)), (-2, -1))
    left = ops.multiply(ops.conj(u), ops.expand_dims(products_of_others(s, -1), -2))
    return ops.multiply(phase, ops.matmul(left, ops.conj(vh)))


def _slogdet_vjp(g: Any, sign: Tensor, x: Tensor) -> Tensor:
    of_sign, factor = g
    if dt.as_dtype(x.dtype) in dt.COMPLEX:
        turned = ops.imag(ops.multiply(ops.conj(of_sign), sign))
        factor = ops.subtract(factor, ops.multiply(turned, 1j))
    return ops.multiply(ops.expand_dims(factor, (-2, -1)), adjoint(inv(x)))


def _pinv_vjp(g: Tensor, r: Tensor, x: Tensor) -> Tensor:
    """Of matrices whose rank does not change nearby; there is no gradient elsewhere."""
    left, turned = adjoint(r), adjoint(g)
    inside = ops.matmul(ops.matmul(left, g), left)
    of_rows, of_columns = ops.matmul(turned, ops.matmul(r, left)), ops.matmul(ops.matmul(left, r), turned)
    beyond_rows = ops.subtract(of_rows, ops.matmul(x, ops.matmul(r, of_rows)))
    beyond_columns = ops.subtract(of_columns, ops.matmul(ops.matmul(of_columns, r), x))
    return ops.subtract(ops.add(beyond_rows, beyond_columns), inside)


def _lstsq_left_vjp(g: Any, r: Any, a: Tensor, b: Tensor, rcond: float | None) -> Tensor:
    inverse = pinv(a, rcond)
    of_solution, solution, right = (_as_columns(part, b) for part in (g[0], r[0], b))
    found = _pinv_vjp(ops.matmul(of_solution, adjoint(right)), inverse, a)
    u, _, vh = ops.svd(a, False)
    found = ops.add(found, ops.matmul(ops.multiply(u, ops.expand_dims(g[3], -2)), vh))
    if r[1].shape[0]:
        missed = _residuals_vjp(g[1], a, solution, right)
        found = ops.subtract(found, ops.matmul(missed, adjoint(solution)))
    return found


def _lstsq_right_vjp(g: Any, r: Any, a: Tensor, b: Tensor, rcond: float | None) -> Tensor:
    of_solution, solution, right = (_as_columns(part, b) for part in (g[0], r[0], b))
    found = ops.matmul(adjoint(pinv(a, rcond)), of_solution)
    if r[1].shape[0]:
        found = ops.add(found, _residuals_vjp(g[1], a, solution, right))
    return _restore_vector(found, b)


def _residuals_vjp(g: Tensor, a: Tensor, solution: Tensor, right: Tensor) -> Tensor:
    """Return the gradient by the residuals of their sums of squares, which does not depend on the solution."""
    return ops.multiply(ops.subtract(right, ops.matmul(a, solution)), ops.multiply(g, 2.0))
