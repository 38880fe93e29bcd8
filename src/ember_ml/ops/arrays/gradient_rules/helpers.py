"""Helpers of gradient rules: vector-Jacobian products of reducing, selecting and ordering."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ember_ml import ops
from ember_ml.backend.common.axes import axes_of, count_along, reduced_shape
from ember_ml.backend.common.quantiles import positions, read_probabilities
from ember_ml.core.dtypes import as_dtype

__all__ = [
    "adjoint",
    "cast_back",
    "extremes",
    "products_of_others",
    "quantile_vjp",
    "selection_vjp",
    "sort_vjp",
    "spread",
    "take_vjp",
    "trigamma",
]


def adjoint(x: Any) -> Any:
    """Return the conjugate transposes of matrices."""
    turned = ops.matrix_transpose(x)
    return ops.conj(turned) if as_dtype(x.dtype).kind == "complex" else turned


def cast_back(g: Any, like: Any) -> Any:
    """Return the gradient in the dtype of ``like``; of a real tensor it is real."""
    dtype = as_dtype(like.dtype)
    if as_dtype(g.dtype).kind == "complex" and dtype.kind != "complex":
        g = ops.real(g)
    return ops.cast(g, dtype)


def _kept_shape(shape: tuple[int, ...], axis: Any) -> tuple[int, ...]:
    """Return ``shape`` with the reduced axes of length 1."""
    return reduced_shape(shape, axes_of(axis, len(shape)), keepdims=True)


def spread(g: Any, shape: tuple[int, ...], axis: Any) -> Any:
    """Return a reduced tensor along the axes over which it was reduced."""
    return ops.broadcast_to(g if axis is None else ops.reshape(g, _kept_shape(shape, axis)), shape)


def extremes(g: Any, r: Any, x: Any, axis: Any) -> Any:
    """Return the gradient of a maximum or minimum: shared evenly by the elements that are it."""
    shape = _kept_shape(tuple(x.shape), axis)
    is_it = ops.cast(ops.equal(x, ops.reshape(r, shape)), x.dtype)
    shared = ops.divide_no_nan(ops.reshape(g, shape), ops.sum(is_it, axis, keepdims=True))
    return ops.multiply(is_it, shared)


def products_of_others(x: Any, axis: Any) -> Any:
    """Return for each element the product of all others that are reduced with it; right where some are zero."""
    axes = axes_of(axis, len(x.shape))
    rest = tuple(place for place in range(len(x.shape)) if place not in axes)
    order = (*rest, *axes)
    moved = ops.transpose(x, order)
    flat = ops.reshape(moved, (*(x.shape[place] for place in rest), count_along(x.shape, axis)))
    before = _exclusive(flat)
    after = ops.flip(_exclusive(ops.flip(flat, -1)), -1)
    return ops.transpose(ops.reshape(ops.multiply(before, after), tuple(moved.shape)), inverse_order(order))


def _exclusive(x: Any) -> Any:
    """Return the product of all elements before each one along the last axis."""
    first = ops.ones_like(x[..., :1])
    return ops.concatenate([first, ops.cumprod(x, -1)[..., :-1]], -1) if x.shape[-1] else x


def selection_vjp(g: Any, x: Any, select: Callable[[Any], Any]) -> Any:
    """Return the gradient of an op that only selects, repeats or reorders elements, by letting it select indices."""
    shape, size = tuple(x.shape), math.prod(x.shape)
    if not size:
        return ops.zeros(shape, as_dtype(g.dtype))
    places = select(ops.reshape(ops.arange(size), shape))
    return ops.reshape(ops.segment_sum(ops.ravel(g), ops.ravel(places), size), shape)


def take_vjp(g: Any, x: Any, indices: Any, axis: int | None) -> Any:
    """Return the gradient of ``take``: each slice is added to where it was taken from."""
    if axis is None:
        return selection_vjp(g, x, lambda places: ops.take(places, indices, None))
    axis %= len(x.shape)
    length, extra = x.shape[axis], ops.ndim(indices)
    order = (*range(axis, axis + extra), *(p for p in range(len(g.shape)) if not axis <= p < axis + extra))
    others = tuple(n for place, n in enumerate(x.shape) if place != axis)
    rows = ops.reshape(ops.transpose(g, order), (math.prod(ops.shape(indices)), *others))
    ids = ops.ravel(ops.where(ops.less(indices, 0), ops.add(indices, length), indices))
    return ops.moveaxis(ops.segment_sum(rows, ids, length), 0, axis)


def sort_vjp(g: Any, order: Any, axis: int | None, shape: tuple[int, ...]) -> Any:
    """Undo the reordering of elements by ``order`` along ``axis``, or of all if it is None; restore ``shape``."""
    if not len(g.shape):
        return g
    along = 0 if axis is None else axis
    return ops.reshape(ops.take_along_axis(g, ops.argsort(order, along), along), shape)


def quantile_vjp(g: Any, x: Any, q: Any, axis: Any, method: str = "linear") -> Any:
    """Return the gradient of quantiles: to the two neighbours of each, by their weights."""
    axes = axes_of(axis, len(x.shape))
    rest = tuple(place for place in range(len(x.shape)) if place not in axes)
    moved, length = ops.transpose(x, (*rest, *axes)), count_along(x.shape, axis)
    flat = ops.reshape(moved, (*(x.shape[place] for place in rest), length))
    _, probabilities = read_probabilities(q)
    gradients = ops.reshape(g, (len(probabilities), *flat.shape[:-1], 1))
    ordered = ops.zeros_like(flat)
    for place, (low, high, share) in enumerate(zip(*positions(length, probabilities, method), strict=True)):
        below = ops.multiply(ops.one_hot(low, length, dtype=x.dtype), 1.0 - share)
        above = ops.multiply(ops.one_hot(high, length, dtype=x.dtype), share)
        ordered = ops.add(ordered, ops.multiply(gradients[place], ops.add(below, above)))
    back = sort_vjp(ordered, ops.argsort(flat, -1), -1, tuple(flat.shape))
    return ops.transpose(ops.reshape(back, tuple(moved.shape)), inverse_order((*rest, *axes)))


def inverse_order(order: Sequence[int]) -> tuple[int, ...]:
    """Return the order of axes that undoes ``order``, which may count from the end."""
    places = [axis % len(order) for axis in order]
    return tuple(places.index(place) for place in range(len(order)))


def trigamma(x: Any) -> Any:
    """Return the derivative of ``digamma``: by reflection below 1/2, then shifted to where its expansion is exact."""
    is_low = ops.less(x, 0.5)
    z = ops.where(is_low, ops.subtract(1.0, x), x)
    total = ops.zeros_like(z)
    for _ in range(8):
        total = ops.add(total, ops.reciprocal(ops.square(z)))
        z = ops.add(z, 1.0)
    w = ops.reciprocal(ops.square(z))
    # Bernoulli numbers: 1/6, -1/30, 1/42, -1/30, 5/66, -691/2730
    series = ops.zeros_like(z)
    for coefficient in (-691 / 2730, 5 / 66, -1 / 30, 1 / 42, -1 / 30, 1 / 6):
        series = ops.multiply(w, ops.add(series, coefficient))
    value = ops.add(total, ops.add(ops.divide(ops.add(series, 1.0), z), ops.multiply(w, 0.5)))
    reflected = ops.square(ops.divide(math.pi, ops.sin(ops.multiply(x, math.pi))))
    return ops.where(is_low, ops.subtract(reflected, value), value)
