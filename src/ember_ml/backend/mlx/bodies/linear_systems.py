"""Linear systems and determinants, on MLX: on the CPU, where alone it has them, and of matrices that are not empty.

MLX fails while it evaluates a singular matrix, so that the zeros on its diagonal are replaced before, and the result
by NaN after.
"""

from __future__ import annotations

import mlx.core as mx
import numpy as np

from ember_ml.backend.common.linalg import SINGULAR, check_square, check_system
from ember_ml.backend.mlx import complex_matrices as cm
from ember_ml.backend.mlx.bodies.factorizations import lu_parts, or_nan, raise_if
from ember_ml.backend.mlx.empty_reductions import any_along, product_along, sum_along
from ember_ml.backend.named_results import SlogdetResult


def _columns(a: mx.array, b: mx.array) -> tuple[mx.array, mx.array]:
    """Both sides with the same leading dimensions, the right one as columns."""
    if b.ndim == 1:
        b = b[:, None]
    stack = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return mx.broadcast_to(a, (*stack, *a.shape[-2:])), mx.broadcast_to(b, (*stack, *b.shape[-2:]))


def solve(a: mx.array, b: mx.array) -> mx.array:
    check_system(a, b)
    left, right = _columns(a, b)
    result = _solved(left, right)
    return result[..., 0] if b.ndim == 1 else result


def _solved(a: mx.array, b: mx.array) -> mx.array:
    if 0 in b.shape:
        return b
    if a.dtype == mx.complex64:
        return cm.columns_as_complex(_solved(cm.embed(a), cm.columns_as_real(b)))
    if a.shape[-1] == 1:  # MLX's own decomposition of a single number corrupts memory
        regular, a = _regular(a)
        return or_nan(b / a, regular)
    places, lower, upper = mx.linalg.lu(a, stream=mx.cpu)  # a is the rows of lower @ upper at these places
    regular, upper = _regular(upper)
    order = mx.argsort(places, axis=-1)
    b = mx.take_along_axis(b, mx.broadcast_to(order[..., None], b.shape), axis=-2)
    b = mx.linalg.solve_triangular(lower, b, upper=False, stream=mx.cpu)
    return or_nan(mx.linalg.solve_triangular(upper, b, upper=True, stream=mx.cpu), regular)


def _regular(x: mx.array) -> tuple[mx.array, mx.array]:
    """Which triangular matrices have no zero on the diagonal, and the matrices with ones in the place of such zeros."""
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
        regular, left = _regular(mx.tril(left) if lower else mx.triu(left))
        if left.dtype == mx.complex64:
            result = _solved(left, right)
        else:
            result = mx.linalg.solve_triangular(left, right, upper=not lower, stream=mx.cpu)
        result = or_nan(result, regular)
    return result[..., 0] if b.ndim == 1 else result


def inv(x: mx.array) -> mx.array:
    check_square(x)
    identity = mx.eye(x.shape[-1]).astype(x.dtype)
    return _solved(*_columns(x, identity))


def _pivots_and_sign(x: mx.array) -> tuple[mx.array, mx.array]:
    """The diagonal of U, and -1 for an odd number of exchanges of rows."""
    lu, pivots = lu_parts(x)
    exchanges = sum_along(pivots != mx.arange(x.shape[-1]), axis=-1)
    return mx.diagonal(lu, 0, -2, -1), 1 - 2 * (exchanges % 2)


def det(x: mx.array) -> mx.array:
    check_square(x)
    diagonal, sign = _pivots_and_sign(x)  # MLX's own is in float32 whatever the dtype
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
