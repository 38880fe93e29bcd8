"""Reductions: what is left of a tensor when one, several or all of its axes are taken together.

``axis`` is an int, a tuple of ints, or None for all axes; negative ones count from the end. ``axis=()`` takes nothing
together. With ``keepdims`` the axes stay, with length 1. An axis that is not there raises ``IndexError``, one named
twice ``ValueError``. Half precision is accumulated in float32.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ember_ml import ops
from ember_ml.backend.common.axes import axes_of, count_along
from ember_ml.dispatch.declare import derived, gradient, primitive
from ember_ml.dispatch.dtype_rules import FLOATING, LOGICAL, ORDER, ORDERED, REAL, REAL_FLOATING, SAME
from ember_ml.ops.arrays.gradient_rules import helpers
from ember_ml.typing import AxisLike, DTypeLike, Tensor, TensorLike

__all__ = [
    "all",
    "amax",
    "amin",
    "any",
    "argmax",
    "argmin",
    "average",
    "count_nonzero",
    "gaussian",
    "logsumexp",
    "max",
    "mean",
    "min",
    "moments",
    "prod",
    "ptp",
    "reduce_max",
    "reduce_mean",
    "reduce_min",
    "reduce_prod",
    "reduce_std",
    "reduce_sum",
    "reduce_var",
    "std",
    "sum",
    "var",
]

_INDEX = ORDER.giving("int64")


@primitive(SAME.giving("wide"), "reduce_sum")
def sum(x: TensorLike, axis: AxisLike | None = None, dtype: DTypeLike | None = None, keepdims: bool = False) -> Tensor:
    """The sum of the elements, 0 where there are none.

    Signed integers and bools are added in int64, unsigned ones in uint64, and give that dtype. The error of a float32
    sum is below 1e-6 of the sum of the absolute values, however many elements there are. With ``dtype`` the elements
    are cast first.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.sum([[1.0, 2.0], [3.0, 4.0]], axis=0)).tolist()
    [4.0, 6.0]
    >>> ops.sum(ops.array([200, 100], dtype="uint8")).item()
    300
    """
    ...


gradient(sum, x=lambda g, _x, axis: helpers.spread(helpers.cast_back(g, _x), _x.shape, axis))


@primitive(SAME.giving("wide"), "reduce_prod")
def prod(x: TensorLike, axis: AxisLike | None = None, dtype: DTypeLike | None = None, keepdims: bool = False) -> Tensor:
    """The product of the elements, 1 where there are none.

    Signed integers and bools are multiplied in int64, unsigned ones in uint64, and wrap beyond it. With ``dtype`` the
    elements are cast first. The order of the factors is that of the backend, so that a part of them may overflow before
    a 0 comes: then the product is NaN on one backend and 0 on another.

    >>> from ember_ml import ops
    >>> ops.prod([2.0, 3.0, 4.0]).item()
    24.0
    """
    ...


gradient(
    prod,
    x=lambda g, x, axis: ops.multiply(
        helpers.spread(helpers.cast_back(g, x), tuple(x.shape), axis), helpers.products_of_others(x, axis)
    ),
)


@primitive(FLOATING, "reduce_mean")
def mean(x: TensorLike, axis: AxisLike | None = None, keepdims: bool = False) -> Tensor:
    """The arithmetic mean, NaN where there are no elements; of integers, in float32.

    >>> from ember_ml import ops
    >>> ops.mean([1, 2]).item()
    1.5
    """
    ...


gradient(
    mean,
    x=lambda g, _x, axis: helpers.spread(ops.divide(g, count_along(_x.shape, axis) or 1), _x.shape, axis),
)


@primitive(FLOATING.giving("real"), "reduce_var")
def var(x: TensorLike, axis: AxisLike | None = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """The variance: the mean squared distance from the mean; of integers in float32, of complex numbers real.

    ``correction`` is subtracted from the number of elements by which the sum is divided: 0 for a population, 1 for a
    sample. Where nothing is left to divide by, the result is NaN or infinite.

    >>> from ember_ml import ops
    >>> ops.var([1.0, 3.0]).item(), ops.var([1.0, 3.0], correction=1).item()
    (1.0, 2.0)
    """
    ...


gradient(var, holomorphic=False, x=lambda g, x, axis, correction: _variance_vjp(g, x, axis, correction))


@primitive(FLOATING.giving("real"), "reduce_std")
def std(x: TensorLike, axis: AxisLike | None = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """The standard deviation, the square root of :func:`var`.

    >>> from ember_ml import ops
    >>> ops.std([1.0, 3.0]).item()
    1.0
    """
    ...


gradient(
    std,
    holomorphic=False,
    x=lambda g, r, x, axis, correction: _deviation_vjp(ops.divide_no_nan(g, ops.add(r, r)), x, axis, correction),
)


@primitive(ORDERED, "reduce_max", "amax")
def max(
    x: TensorLike, axis: AxisLike | None = None, keepdims: bool = False, initial: TensorLike | None = None
) -> Tensor:
    """The largest element, NaN where there is one; ``ValueError`` where there are no elements.

    With ``initial``, a number, the result is at least that, and that where there are no elements.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.max([[1.0, 4.0], [3.0, 2.0]], axis=1)).tolist()
    [4.0, 3.0]
    >>> ops.max([1.0, 4.0], initial=6.0).item()
    6.0
    """
    ...


gradient(
    max,
    x=lambda g, r, x, axis, initial: _extreme_vjp(max, g, r, x, axis, initial),
    initial=lambda g, r, x, axis, initial: ops.multiply(g, ops.subtract(1.0, _weigh(max, r, x, axis, initial))),
)


@primitive(ORDERED, "reduce_min", "amin")
def min(
    x: TensorLike, axis: AxisLike | None = None, keepdims: bool = False, initial: TensorLike | None = None
) -> Tensor:
    """The smallest element, NaN where there is one; ``ValueError`` where there are no elements.

    With ``initial``, a number, the result is at most that, and that where there are no elements.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.min([[1.0, 4.0], [3.0, 2.0]], axis=1)).tolist()
    [1.0, 2.0]
    >>> ops.min([1.0, 4.0], initial=0.0).item()
    0.0
    """
    ...


gradient(
    min,
    x=lambda g, r, x, axis, initial: _extreme_vjp(min, g, r, x, axis, initial),
    initial=lambda g, r, x, axis, initial: ops.multiply(g, ops.subtract(1.0, _weigh(min, r, x, axis, initial))),
)


@primitive(_INDEX)
def argmax(x: TensorLike, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The int64 index of the first largest element, or of the first NaN; of the flattened tensor where axis is None.

    ``ValueError`` where there are no elements.

    >>> from ember_ml import ops
    >>> ops.argmax([1.0, 3.0, 3.0]).item()
    1
    """
    ...


@primitive(_INDEX)
def argmin(x: TensorLike, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The int64 index of the first smallest element, or of the first NaN; of the flattened tensor where axis is None.

    ``ValueError`` where there are no elements.

    >>> from ember_ml import ops
    >>> ops.argmin([2.0, 1.0, 1.0]).item()
    1
    """
    ...


@primitive(LOGICAL)
def all(x: TensorLike, axis: AxisLike | None = None, keepdims: bool = False) -> Tensor:
    """Whether every element is true (not zero; NaN is true); true where there are none.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.all([[1.0, 0.0], [2.0, 3.0]], axis=1)).tolist()
    [False, True]
    """
    ...


@primitive(LOGICAL)
def any(x: TensorLike, axis: AxisLike | None = None, keepdims: bool = False) -> Tensor:
    """Whether some element is true (not zero; NaN is true); false where there are none.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.any([[1.0, 0.0], [0.0, 0.0]], axis=1)).tolist()
    [True, False]
    """
    ...


@primitive(LOGICAL.giving("int64"))
def count_nonzero(x: TensorLike, axis: AxisLike | None = None, keepdims: bool = False) -> Tensor:
    """How many elements are not zero, as int64; NaN is not zero.

    >>> from ember_ml import ops
    >>> ops.count_nonzero([[1.0, 0.0], [2.0, 3.0]]).item()
    3
    """
    ...


@primitive(REAL_FLOATING)
def logsumexp(x: TensorLike, axis: AxisLike | None = None, keepdims: bool = False) -> Tensor:
    """The logarithm of the sum of the exponentials, without overflow; -inf where there are no elements.

    >>> from ember_ml import ops
    >>> round(ops.logsumexp([1000.0, 1000.0]).item(), 3)
    1000.693
    """
    ...


gradient(
    logsumexp,
    x=lambda g, r, x, axis: ops.multiply(
        helpers.spread(g, tuple(x.shape), axis),
        ops.exp(ops.subtract(x, helpers.spread(ops.where(ops.isfinite(r), r, 0), tuple(x.shape), axis))),
    ),
)


@derived(REAL)
def ptp(x: TensorLike, axis: AxisLike | None = None, keepdims: bool = False) -> Tensor:
    """The distance from the smallest to the largest element; ``ValueError`` where there are no elements.

    >>> from ember_ml import ops
    >>> ops.ptp([3.0, 1.0, 7.0]).item()
    6.0
    """
    return ops.subtract(max(x, axis, keepdims, None), min(x, axis, keepdims, None))


@derived(FLOATING.giving("own"))
def average(
    x: TensorLike,
    axis: AxisLike | None = None,
    weights: TensorLike | None = None,
    returned: bool = False,
    keepdims: bool = False,
) -> Any:
    """The mean in which each element counts by its weight; with ``returned``, also the sum of the weights.

    ``weights`` has the shape of ``x``, or the lengths of ``axis``, in that order. Weights that sum to 0 give NaN or
    infinities.

    >>> from ember_ml import ops
    >>> ops.average([1.0, 2.0, 4.0], weights=[1.0, 1.0, 2.0]).item()
    2.75
    """
    if weights is None:
        result = mean(x, axis, keepdims)
        return (result, ops.full_like(result, count_along(x.shape, axis))) if returned else result
    weights = _spread(weights, x, axis)
    scale = sum(weights, axis, None, keepdims)
    result = ops.divide(sum(ops.multiply(x, weights), axis, None, keepdims), scale)
    return (result, scale) if returned else result


def _spread(weights: Tensor, x: Tensor, axis: AxisLike | None) -> Tensor:
    """Return the weights in the shape of ``x``."""
    sizes = tuple(x.shape)
    if tuple(weights.shape) == sizes:
        return weights
    if axis is None:
        raise TypeError(
            f"weights of shape {tuple(weights.shape)} need an axis; without it their shape is that of x, {sizes}"
        )
    given = axis if isinstance(axis, tuple) else (axis,)
    axes = [axes_of(one, len(sizes))[0] for one in given]
    if tuple(weights.shape) != tuple(sizes[one] for one in axes):
        raise ValueError(f"weights of shape {tuple(weights.shape)} fit neither x, {sizes}, nor its axes {given}")
    weights = ops.transpose(weights, tuple(sorted(range(len(axes)), key=axes.__getitem__)))
    weights = ops.reshape(weights, tuple(n if i in axes else 1 for i, n in enumerate(sizes)))
    return ops.broadcast_to(weights, sizes)


@derived(FLOATING.giving("own"))
def moments(x: TensorLike, axes: AxisLike | None, keepdims: bool = False) -> tuple[Tensor, Tensor]:
    """The mean and the variance over ``axes``, as a pair.

    >>> from ember_ml import ops
    >>> mean, variance = ops.moments([1.0, 3.0], axes=0)
    >>> mean.item(), variance.item()
    (2.0, 1.0)
    """
    return mean(x, axes, keepdims), var(x, axes, 0.0, keepdims)


@derived(REAL_FLOATING)
def gaussian(x: TensorLike, mu: TensorLike = 0.0, sigma: TensorLike = 1.0) -> Tensor:
    """The density at ``x`` of the normal distribution with mean ``mu`` and standard deviation ``sigma``.

    >>> from ember_ml import ops
    >>> round(ops.gaussian(0.0).item(), 4)
    0.3989
    """
    height = ops.divide(1.0 / math.sqrt(2.0 * math.pi), sigma)
    distance = ops.divide(ops.subtract(x, mu), sigma)
    return ops.multiply(height, ops.exp(ops.multiply(-0.5, ops.square(distance))))


reduce_sum = sum
reduce_prod = prod
reduce_mean = mean
reduce_var = var
reduce_std = std
reduce_max = max
amax = max
amin = min
reduce_min = min


def _extreme_vjp(find: Callable[..., Tensor], g: Tensor, r: Tensor, x: Tensor, axis: Any, initial: Any) -> Tensor:
    if initial is None:
        return helpers.extremes(g, r, x, axis)
    if not count_along(x.shape, axis):
        return ops.zeros_like(x)
    return helpers.extremes(ops.multiply(g, _weigh(find, r, x, axis, initial)), find(x, axis), x, axis)


def _weigh(find: Callable[..., Tensor], r: Tensor, x: Tensor, axis: Any, initial: Tensor) -> Tensor:
    """Return the factor of the gradient for the elements: half of it where ``initial`` is the result too."""
    if not count_along(x.shape, axis):
        return ops.zeros_like(r)
    own = ops.reshape(find(x, axis), tuple(r.shape))
    part = ops.subtract(1.0, ops.multiply(0.5, ops.cast(ops.equal(own, initial), r.dtype)))
    return ops.where(ops.equal(own, r), part, 0.0)


def _variance_vjp(g: Tensor, x: Tensor, axis: Any, correction: float) -> Tensor:
    n = count_along(x.shape, axis)
    scale = 2.0 / (n - correction) if n > correction else math.nan
    deviations = ops.subtract(x, mean(x, axis, True))
    return ops.multiply(helpers.spread(ops.multiply(g, scale), tuple(x.shape), axis), deviations)


def _deviation_vjp(g: Tensor, x: Tensor, axis: Any, correction: float) -> Tensor:
    # the deviations of equal elements are the rounding error of their mean, and so is the result by which g was divided
    found = _variance_vjp(g, x, axis, correction)
    return ops.subtract(found, mean(found, axis, True))
