"""Norms of vectors and matrices, and distances between vectors.

All compute in floats: integers are lifted to float32, half precision adds up in float32 and is rounded once.
"""

from __future__ import annotations

import math
from typing import Any

from ember_ml import ops
from ember_ml.backend.common.axes import axes_of, reduced_shape
from ember_ml.backend.common.shapes import as_axes
from ember_ml.core import dtypes as dt
from ember_ml.core.dtypes import as_dtype
from ember_ml.dispatch.declare import derived, gradient
from ember_ml.dispatch.dtype_rules import FLOATING, REAL_FLOATING
from ember_ml.dispatch.half_precision import in_float32, is_half
from ember_ml.ops.arrays.gradient_rules.helpers import extremes
from ember_ml.typing import AxisLike, Tensor, TensorLike

__all__ = ["cdist", "cosine_similarity", "euclidean_distance", "matrix_norm", "norm", "normalize", "vector_norm"]

_BLOCK = 1 << 22  # elements of the differences that cdist holds at a time


@derived(FLOATING.giving("real"))
def norm(x: TensorLike, ord: float | str | None = None, axis: AxisLike | None = None, keepdims: bool = False) -> Tensor:
    """The norm of a vector or matrix: by default the square root of the sum of squares, over all dimensions.

    One ``axis`` takes vector norms (:func:`vector_norm`), two take matrix norms (:func:`matrix_norm`). With ``ord`` and
    without ``axis``, ``x`` must be 1-D or 2-D, which decides between them.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.norm([3.0, 4.0])).tolist()
    5.0
    >>> ops.to_numpy(ops.norm([[1.0, -2.0], [3.0, 4.0]], ord=1)).tolist()
    6.0
    """
    if axis is None and ord is None:
        return vector_norm(x, None, keepdims, 2)
    axes = tuple(range(x.ndim)) if axis is None else as_axes(axis, x.ndim)
    if len(axes) == 1:
        return vector_norm(x, axes, keepdims, 2 if ord is None else ord)
    if len(axes) != 2:
        raise ValueError(f"a norm of order {ord} is over one or two dimensions, not {len(axes)}; name them with axis")
    rows, columns = axes
    result = matrix_norm(ops.moveaxis(x, (rows, columns), (-2, -1)), False, "fro" if ord is None else ord)
    return ops.expand_dims(result, (min(rows, columns), max(rows, columns))) if keepdims else result


@derived(FLOATING.giving("real"))
def vector_norm(x: TensorLike, axis: AxisLike | None = None, keepdims: bool = False, ord: float | str = 2) -> Tensor:
    """The norm of order ``ord`` over ``axis``, or over all elements: ``sum(abs(x) ** ord) ** (1 / ord)``.

    Infinity gives the largest absolute value, minus infinity the smallest (``ValueError`` if there is none), 0 the
    number of elements that are not 0. Squares and powers can overflow where the norm itself would not. Where the norm
    is 0 so is its gradient.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.vector_norm([[3.0, 4.0], [6.0, 8.0]], axis=1)).tolist()
    [5.0, 10.0]
    """
    if not isinstance(ord, int | float):
        raise ValueError(f"the order of a vector norm is a number, not {ord!r}")
    own = ops.dtype(x)
    size = ops.abs(ops.cast(x, dt.float32) if own in dt.HALVES else x)
    if ord == math.inf:
        result = ops.max(size, axis=axis, keepdims=keepdims)
    elif ord == -math.inf:
        result = ops.min(size, axis=axis, keepdims=keepdims)
    elif ord == 0:
        result = ops.sum(ops.cast(ops.not_equal(size, 0), ops.dtype(size)), axis=axis, keepdims=keepdims)
    elif ord == 1:
        result = ops.sum(size, axis=axis, keepdims=keepdims)
    elif ord == 2:
        result = ops.sqrt(ops.sum(ops.square(size), axis=axis, keepdims=keepdims))
    else:
        powers = ops.sum(ops.power(size, float(ord)), axis=axis, keepdims=keepdims)
        result = ops.power(powers, 1.0 / ord)
    return ops.cast(result, own) if own in dt.HALVES else result


gradient(
    vector_norm,
    holomorphic=False,
    x=lambda g, r, x, axis, ord: (
        in_float32(_norm_vjp, g, r, x, axis, ord) if is_half(x) else _norm_vjp(g, r, x, axis, ord)
    ),
)


@derived(FLOATING.giving("real"))
def matrix_norm(x: TensorLike, keepdims: bool = False, ord: float | str = "fro") -> Tensor:
    """The norms of the matrices in the last two dimensions.

    ``"fro"`` is the root of the sum of squares, ``"nuc"`` the sum of the singular values, 2 and -2 the largest and
    smallest of them, 1 and -1 the largest and smallest sum of absolute values in a column, infinity and minus
    infinity in a row.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.matrix_norm([[3.0, 0.0], [0.0, 4.0]])).tolist()
    5.0
    """
    if x.ndim < 2:
        raise ValueError(f"a matrix norm needs at least 2 dimensions, not {x.ndim}")
    if ord == "fro":
        return vector_norm(x, (-2, -1), keepdims, 2)
    if ord in ("nuc", 2, -2):
        dtype = as_dtype(x.dtype)
        values = ops.svdvals(ops.cast(x, dt.float32) if dtype in dt.HALVES else x)
        pick: Any = {"nuc": ops.sum, 2: ops.max, -2: ops.min}[ord]
        result = pick(values, axis=-1)
        if dtype in dt.HALVES:
            result = ops.cast(result, dtype)
    elif ord in (1, -1, math.inf, -math.inf):
        sums = vector_norm(x, -2 if abs(ord) == 1 else -1, False, 1)
        result = (ops.max if ord > 0 else ops.min)(sums, axis=-1)
    else:
        raise ValueError(f"the order of a matrix norm is 'fro', 'nuc', 1, -1, 2, -2, inf or -inf, not {ord!r}")
    return ops.expand_dims(result, (-2, -1)) if keepdims else result


@derived(REAL_FLOATING)
def euclidean_distance(x: TensorLike, y: TensorLike, axis: int = -1) -> Tensor:
    """The distances between the vectors along ``axis`` of ``x`` and ``y``, which broadcast.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.euclidean_distance([0.0, 0.0], [3.0, 4.0])).tolist()
    5.0
    """
    return vector_norm(ops.subtract(x, y), axis, False, 2)


@derived(REAL_FLOATING)
def cosine_similarity(x: TensorLike, y: TensorLike, axis: int = -1, eps: float = 1e-8) -> Tensor:
    """The cosines of the angles between the vectors along ``axis`` of ``x`` and ``y``, which broadcast.

    Norms below ``eps`` count as ``eps``, so a zero vector has similarity 0 with every other.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.cosine_similarity([1.0, 0.0], [[2.0, 0.0], [0.0, 5.0], [-1.0, 0.0]])).tolist()
    [1.0, 0.0, -1.0]
    """
    own = ops.dtype(x)
    if own in dt.HALVES:
        x, y = ops.cast(x, dt.float32), ops.cast(y, dt.float32)
    unit_x = ops.divide(x, ops.maximum(vector_norm(x, axis, True, 2), eps))
    unit_y = ops.divide(y, ops.maximum(vector_norm(y, axis, True, 2), eps))
    result = ops.sum(ops.multiply(unit_x, unit_y), axis=axis)
    return ops.cast(result, own) if own in dt.HALVES else result


@derived(FLOATING)
def normalize(x: TensorLike, axis: int = -1, order: float = 2, epsilon: float | None = None) -> Tensor:
    """The vectors along ``axis`` divided by their norms of that order.

    Norms below ``epsilon`` count as ``epsilon``, by default the square root of the smallest normal number: a zero
    vector stays zero.

    >>> from ember_ml import ops
    >>> [round(value, 3) for value in ops.to_numpy(ops.normalize([3.0, 4.0])).tolist()]
    [0.6, 0.8]
    """
    own = ops.dtype(x)
    if own in dt.HALVES:
        x = ops.cast(x, dt.float32)
    least = ops.finfo(ops.dtype(x)).smallest_normal ** 0.5 if epsilon is None else epsilon
    result = ops.divide(x, ops.cast(ops.maximum(vector_norm(x, axis, True, order), least), ops.dtype(x)))
    return ops.cast(result, own) if own in dt.HALVES else result


@derived(REAL_FLOATING)
def cdist(x: TensorLike, y: TensorLike, p: float = 2.0) -> Tensor:
    """The distance of every row of ``x`` from every row of ``y`` in the norm of order ``p``.

    For ``x`` of shape (..., m, k) and ``y`` of shape (..., n, k) the result has shape (..., m, n); leading dimensions
    broadcast. The differences themselves are taken, so rows that are close to each other keep their precision.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.cdist([[0.0, 0.0], [3.0, 0.0]], [[0.0, 4.0]])).tolist()
    [[4.0], [5.0]]
    """
    if x.ndim < 2 or y.ndim < 2:
        raise ValueError(f"cdist takes tensors of at least 2 dimensions, not {x.ndim} and {y.ndim}")
    if x.shape[-1] != y.shape[-1]:
        raise ValueError(f"the rows have {x.shape[-1]} and {y.shape[-1]} elements; they must agree")
    if p < 0:
        raise ValueError(f"the order of a distance is at least 0, not {p}")
    p = p if x.shape[-1] else 1.0  # rows without elements are 0 apart, though nothing is the largest of none
    batch = math.prod(ops.broadcast_shapes(tuple(x.shape[:-2]), tuple(y.shape[:-2])))
    per_row = max(batch * y.shape[-2] * x.shape[-1], 1)
    step = max(_BLOCK // per_row, 1)
    others = ops.expand_dims(y, -3)
    rows = ops.expand_dims(x, -2)
    blocks = [
        vector_norm(ops.subtract(rows[..., start : start + step, :, :], others), -1, False, p)
        for start in range(0, max(x.shape[-2], 1), step)
    ]
    return blocks[0] if len(blocks) == 1 else ops.concatenate(blocks, axis=-2)


def _norm_vjp(g: Tensor, r: Tensor, x: Tensor, axis: AxisLike | None, ord: float) -> Tensor:
    """Return the gradient of a vector norm: that of ``abs(x)`` times the signs of ``x``; no power of 0 is taken."""
    if ord == 0:
        return ops.zeros_like(x)
    if math.isinf(ord):
        return ops.multiply(ops.sign(x), extremes(g, r, ops.abs(x), axis))
    shape = reduced_shape(tuple(x.shape), axes_of(axis, x.ndim), keepdims=True)
    g, r = ops.reshape(g, shape), ops.reshape(r, shape)
    if ord == 2:
        return ops.multiply(x, ops.divide_no_nan(g, r))
    if ord == 1:
        return ops.multiply(ops.sign(x), g)
    is_zero = ops.logical_or(ops.equal(x, 0), ops.equal(r, 0))
    share = ops.divide(ops.where(is_zero, 1, ops.abs(x)), ops.where(is_zero, 1, r))
    slope = ops.multiply(ops.sign(x), ops.power(share, float(ord - 1)))
    return ops.where(is_zero, 0, ops.multiply(slope, g))
