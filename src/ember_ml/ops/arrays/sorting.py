"""Sorting and order statistics.

NaN counts as larger than everything else, infinity included: it comes last in ascending order, first in descending
order and among the largest. Complex numbers are ordered by their real part, then by their imaginary part. Indices are
int64.
"""

from __future__ import annotations

from ember_ml import ops
from ember_ml.backend.common.axes import axes_of, fold_axes, reduced_shape
from ember_ml.backend.common.quantiles import Method, fractions, method_of, read_probabilities
from ember_ml.core.dtypes import HALVES, find_dtype
from ember_ml.dispatch.declare import derived, gradient, primitive
from ember_ml.dispatch.dtype_rules import ORDER, REAL_FLOATING, SAME
from ember_ml.ops.arrays.gradient_rules import helpers
from ember_ml.typing import AxisLike, DataLike, Tensor, TensorLike

__all__ = [
    "argpartition",
    "argsort",
    "median",
    "nanmedian",
    "nanpercentile",
    "nanquantile",
    "percentile",
    "quantile",
    "sort",
    "top_k",
]


@primitive(SAME)
def sort(x: TensorLike, axis: int | None = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """The elements in ascending order along an axis, NaN last; in descending order, NaN first. 0-d stays as it is.

    With ``axis=None`` all elements are sorted, in one dimension. Equal elements cannot be told apart, so that
    ``stable`` changes nothing here; which of 0.0 and -0.0 comes first is open.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.sort([3.0, 1.0, 2.0], descending=True)).tolist()
    [3.0, 2.0, 1.0]
    >>> ops.to_numpy(ops.sort([[3.0, 1.0], [0.0, 2.0]], axis=None)).tolist()
    [0.0, 1.0, 2.0, 3.0]
    """
    ...


gradient(
    sort,
    x=lambda g, x, axis, descending: helpers.sort_vjp(g, argsort(x, axis, descending, True), axis, tuple(x.shape)),
)


@primitive(SAME.giving("int64"))
def argsort(x: TensorLike, axis: int | None = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """The int64 indices that sort the tensor along an axis; equal elements, and NaN, stay in their order.

    With ``axis=None`` they are those of the flattened tensor, in one dimension. Without ``stable`` the order of equal
    elements is open, which can be faster.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.argsort([2.0, 1.0, 2.0, 0.0])).tolist()
    [3, 1, 0, 2]
    """
    ...


@primitive(ORDER.giving("int64"))
def argpartition(x: TensorLike, kth: int, axis: int = -1) -> Tensor:
    """Int64 indices along an axis; sorting would put the one at ``kth`` there, and those of larger elements behind it.

    The order within the two parts is open. A ``kth`` that is not there raises ``IndexError``.

    >>> from ember_ml import ops
    >>> sorted(ops.to_numpy(ops.argpartition([4.0, 1.0, 3.0, 2.0], 1))[:2].tolist())
    [1, 3]
    """
    ...


@primitive(ORDER.giving("own"))
def top_k(x: TensorLike, k: int, axis: int = -1, sorted: bool = True) -> tuple[Tensor, Tensor]:
    """The ``k`` largest elements along an axis in descending order, and their int64 indices; of equals, the first.

    With ``sorted=False`` the order of the ``k`` elements is open. ``ValueError`` where there are fewer than ``k``.

    >>> from ember_ml import ops
    >>> values, indices = ops.top_k([1.0, 3.0, 2.0, 3.0], 2)
    >>> ops.to_numpy(values).tolist(), ops.to_numpy(indices).tolist()
    ([3.0, 3.0], [1, 3])
    """
    ...


gradient(top_k, x=lambda g, r, _x, axis: ops.put_along_axis(ops.zeros(_x.shape, _x.dtype), r[1], g[0], axis))


@primitive(REAL_FLOATING)
def median(x: TensorLike, axis: AxisLike | None = None, keepdims: bool = False) -> Tensor:
    """The middle element in order, or the mean of the two middle ones; NaN where there is one or there are no elements.

    >>> from ember_ml import ops
    >>> ops.median([4, 1, 3, 2]).item()
    2.5
    """
    ...


gradient(median, x=lambda g, x, axis: helpers.quantile_vjp(g, x, 0.5, axis))


@primitive(REAL_FLOATING)
def quantile(
    x: TensorLike, q: DataLike, axis: AxisLike | None = None, keepdims: bool = False, method: str = "linear"
) -> Tensor:
    """The value below which the fraction ``q`` of the elements lies.

    ``q`` is a number from 0 to 1 or several of them, whose axes then come first in the result; it is read at once. NaN
    where there is one or there are no elements. ``method`` says what is taken where ``q`` falls between two elements,
    by NumPy's names: "linear" weighs them by distance, "lower", "higher", "nearest" and "midpoint" take one of the same
    two or their mean; "inverted_cdf", "averaged_inverted_cdf", "closest_observation", "interpolated_inverted_cdf",
    "hazen", "weibull", "median_unbiased" and "normal_unbiased" estimate the quantile of the population. Integers give
    floats by every method.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.quantile([1.0, 2.0, 3.0, 4.0], [0.5, 1.0])).tolist()
    [2.5, 4.0]
    >>> ops.quantile([1.0, 2.0, 3.0, 4.0], 0.5, method="lower").item()
    2.0
    """
    ...


gradient(quantile, x=lambda g, x, q, axis, method: helpers.quantile_vjp(g, x, q, axis, method))


@derived(REAL_FLOATING)
def percentile(
    x: TensorLike, q: DataLike, axis: AxisLike | None = None, keepdims: bool = False, method: str = "linear"
) -> Tensor:
    """The :func:`quantile` at ``q`` percent.

    >>> from ember_ml import ops
    >>> ops.percentile([1.0, 2.0, 3.0], 50).item()
    2.0
    """
    return quantile(x, fractions(q, 100.0), axis, keepdims, method)


@derived(REAL_FLOATING)
def nanquantile(
    x: TensorLike, q: DataLike, axis: AxisLike | None = None, keepdims: bool = False, method: str = "linear"
) -> Tensor:
    """The :func:`quantile` of the elements that are not NaN; NaN where there are none.

    >>> from ember_ml import ops
    >>> ops.nanquantile([1.0, float("nan"), 3.0], 0.5).item()
    2.0
    """
    rule = method_of(method)
    outer, probabilities = read_probabilities(q)
    sizes = tuple(x.shape)
    axes = axes_of(axis, x.ndim)
    order, together = fold_axes(sizes, axes)
    shape = (*outer, *reduced_shape(sizes, axes, keepdims))
    if not together[-1]:
        return quantile(x, q, axis, keepdims)
    wide = ops.cast(x, "float32") if find_dtype(x.dtype) in HALVES else x
    ordered = sort(ops.reshape(ops.transpose(wide, order), together))
    count = ops.count_nonzero(ops.logical_not(ops.isnan(ordered)), axis=-1, keepdims=True)
    results = [_read_off(ordered, count, probability, rule) for probability in probabilities]
    return ops.cast(ops.reshape(ops.stack(results), shape), x.dtype)


def _read_off(ordered: Tensor, count: Tensor, probability: float, method: Method) -> Tensor:
    """Return the quantile of the first ``count`` elements of the last axis.

    As :func:`ember_ml.backend.common.quantiles.positions`, in integers that count parts of an index: not every device
    has float64.
    """
    length = int(ordered.shape[-1]).bit_length()
    bits = 60 - length
    whole, half = 2**bits, 2 ** (bits - 1)
    shift = round((probability * method.stretch + method.start) * whole)
    position = ops.add(ops.multiply(count, round(probability * whole)), shift)
    # the rounding of a probability such as 0.1 must not count as a distance from the index or the middle that is meant
    slack = 2 ** max(length, 8)
    nearest = ops.bitwise_left_shift(ops.bitwise_right_shift(ops.add(position, half // 2), bits - 1), bits - 1)
    position = ops.where(ops.less_equal(ops.abs(ops.subtract(position, nearest)), slack), nearest, position)
    lower = ops.bitwise_right_shift(position, bits)
    rest = ops.subtract(position, ops.bitwise_left_shift(lower, bits))
    if method.steps is None:
        weight = ops.multiply(ops.cast(rest, ordered.dtype), 2.0**-bits)
    else:
        middle = ops.add(ops.bitwise_and(lower, 1), 2)
        between = ops.where(ops.less(rest, half), 1, ops.where(ops.greater(rest, half), 4, middle))
        steps = ops.array(method.steps, dtype=ordered.dtype, device=ops.get_device(ordered))
        weight = ops.take(steps, ops.where(ops.equal(rest, 0), 0, between))
    last = ops.maximum(ops.subtract(count, 1), 0)
    below = ops.clip(ops.add(lower, ops.cast(ops.equal(weight, 1), "int64")), 0, last)
    above = ops.clip(ops.add(lower, ops.cast(ops.greater(weight, 0), "int64")), 0, last)
    low = ops.take_along_axis(ordered, below, axis=-1)
    high = ops.take_along_axis(ordered, above, axis=-1)
    between = ops.add(ops.multiply(low, ops.subtract(1.0, weight)), ops.multiply(high, weight))
    return ops.where(ops.equal(low, high), low, between)  # infinities have no middle


@derived(REAL_FLOATING)
def nanpercentile(
    x: TensorLike, q: DataLike, axis: AxisLike | None = None, keepdims: bool = False, method: str = "linear"
) -> Tensor:
    """The :func:`percentile` of the elements that are not NaN; NaN where there are none.

    >>> from ember_ml import ops
    >>> ops.nanpercentile([1.0, float("nan"), 3.0], 50).item()
    2.0
    """
    return nanquantile(x, fractions(q, 100.0), axis, keepdims, method)


@derived(REAL_FLOATING)
def nanmedian(x: TensorLike, axis: AxisLike | None = None, keepdims: bool = False) -> Tensor:
    """The :func:`median` of the elements that are not NaN; NaN where there are none.

    >>> from ember_ml import ops
    >>> ops.nanmedian([1.0, float("nan"), 2.0]).item()
    1.5
    """
    return nanquantile(x, 0.5, axis, keepdims)
