"""Linear systems and determinants, on MLX: on the CPU stream, for matrices that are not empty."""

# MLX 0.32: solves on the CPU only, and fails while it evaluates a singular matrix. Zeros on its diagonal are replaced
# before, and the result by NaN afterwards.

from __future__ import annotations

import mlx.core as mx
import numpy as np

from ember_ml.backend.common.linalg import SINGULAR, check_square, check_system
from ember_ml.backend.common.named_results import SlogdetResult
from ember_ml.backend.mlx import complex_matrices as cm
from ember_ml.backend.mlx.bodies.factorizations import lu_parts, or_nan, raise_if
from ember_ml.backend.mlx.empty_reductions import any_along, product_along, sum_along
from ember_ml.backend.mlx.graph_probe import is_vectorizing
from ember_ml.backend.mlx.vmap_rules import map_over_stacks, not_equal


def _columns(a: mx.array, b: mx.array) -> tuple[mx.array, mx.array]:
    """Broadcast the leading dimensions of both sides; return the right one as columns."""
    if b.ndim == 1:
        b = b[:, None]
    stack = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return mx.broadcast_to(a, (*stack, *a.shape[-2:])), mx.broadcast_to(b, (*stack, *b.shape[-2:]))


# MLX 0.32: forgets under vmap which triangle it was given
_solve_lower = map_over_stacks(lambda a, b: mx.linalg.solve_triangular(a, b, upper=False, stream=mx.cpu))
_solve_upper = map_over_stacks(lambda a, b: mx.linalg.solve_triangular(a, b, upper=True, stream=mx.cpu))


def solve(a: mx.array, b: mx.array) -> mx.array:
    check_system(a, b)
    left, right = _columns(a, b)
    result = _solve_columns(left, right)
    return result[..., 0] if b.ndim == 1 else result


def _solve_columns(a: mx.array, b: mx.array) -> mx.array:
    if 0 in b.shape:
        if a.size:
            _solve_columns(a, mx.ones((*a.shape[:-1], 1), dtype=a.dtype))  # singular or not, without columns too
        return b
    if a.dtype == mx.complex64:
        return cm.columns_as_complex(_solve_columns(cm.embed(a), cm.columns_as_real(b)))
    if a.shape[-1] == 1:  # MLX 0.32: lu of a single number corrupts memory
        regular, a = _replace_zeros(a)
        return or_nan(b / a, regular)
    if is_vectorizing():  # MLX 0.32: no vmap of lu
        lu, _, order = cm.lu(a)
        lower, upper = mx.tril(lu, -1) + mx.eye(lu.shape[-1], dtype=lu.dtype), mx.triu(lu)
    else:
        places, lower, upper = mx.linalg.lu(a, stream=mx.cpu)  # a is (lower @ upper)[places]
        order = mx.argsort(places, axis=-1)
    regular, upper = _replace_zeros(upper)
    b = mx.take_along_axis(b, mx.broadcast_to(order[..., None], b.shape), axis=-2)
    b = _solve_lower(lower, b)
    return or_nan(_solve_upper(upper, b), regular)


def _replace_zeros(x: mx.array) -> tuple[mx.array, mx.array]:
    """Return which triangular matrices have no zero on the diagonal, and the matrices with such zeros replaced by 1."""
    zero = mx.diagonal(x, 0, -2, -1) == 0
    singular = any_along(zero, axis=-1)
    raise_if(singular, SINGULAR)
    return mx.logical_not(singular), x + (zero[..., None] * mx.eye(x.shape[-1])).astype(x.dtype)


def solve_triangular(a: mx.array, b: mx.array, lower: bool) -> mx.array:
    check_system(a, b)
    left, right = _columns(a, b)
    if 0 in right.shape:
        result = right
    else:
        regular, left = _replace_zeros(mx.tril(left) if lower else mx.triu(left))
        if left.dtype == mx.complex64:
            result = _solve_columns(left, right)
        else:
            result = (_solve_lower if lower else _solve_upper)(left, right)
        result = or_nan(result, regular)
    return result[..., 0] if b.ndim == 1 else result


def inv(x: mx.array) -> mx.array:
    check_square(x)
    identity = mx.eye(x.shape[-1]).astype(x.dtype)
    return _solve_columns(*_columns(x, identity))


def _pivots_and_sign(x: mx.array) -> tuple[mx.array, mx.array]:
    """Return the diagonal of U, and -1 for an odd number of row exchanges, otherwise 1."""
    lu, pivots = lu_parts(x)
    exchanges = sum_along(not_equal(pivots, mx.arange(x.shape[-1])), axis=-1)
    return mx.diagonal(lu, 0, -2, -1), 1 - 2 * (exchanges % 2)


def det(x: mx.array) -> mx.array:
    check_square(x)
    diagonal, sign = _pivots_and_sign(x)  # MLX 0.32: det computes in float32
    return product_along(diagonal, axis=-1) * sign.astype(x.dtype)


def slogdet(x: mx.array) -> SlogdetResult:
    check_square(x)
    diagonal, sign = _pivots_and_sign(x)
    size = mx.abs(diagonal)
    if x.dtype == mx.complex64:
        signs = diagonal / mx.where(size == 0, 1, size)
    else:
        signs = (diagonal > 0).astype(x.dtype) - (diagonal < 0).astype(x.dtype)
        signs = mx.where(mx.isnan(diagonal), diagonal, signs)
    return SlogdetResult(product_along(signs, axis=-1) * sign.astype(x.dtype), sum_along(mx.log(size), axis=-1))
