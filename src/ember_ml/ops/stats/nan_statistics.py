"""The statistics of the elements that are not NaN."""

from __future__ import annotations

from collections.abc import Callable

import ember_ml.ops as ops
from ember_ml.backend import value_checks
from ember_ml.backend.selection import active
from ember_ml.core.dtypes import HALVES, find_dtype
from ember_ml.dispatch.declare import derived
from ember_ml.dispatch.dtype_rules import FLOATING, ORDER, ORDERED, SAME
from ember_ml.typing import AxisLike, DTypeLike, Tensor, TensorLike

__all__ = [
    "nanargmax",
    "nanargmin",
    "nancumprod",
    "nancumsum",
    "nanmax",
    "nanmean",
    "nanmin",
    "nanprod",
    "nanstd",
    "nansum",
    "nanvar",
]

_WIDE = SAME.giving("wide")
_INDEX = ORDER.giving("int64")
_INFINITY = float("inf")


def _may_be_nan(x: Tensor) -> bool:
    dtype = find_dtype(x.dtype)
    return dtype is not None and dtype.kind in ("float", "complex")


def _replace_nan(x: Tensor, value: float) -> Tensor:
    """Return the tensor with ``value`` in place of NaN."""
    return ops.where(ops.isnan(x), value, x) if _may_be_nan(x) else x


@derived(_WIDE)
def nansum(
    x: TensorLike, axis: AxisLike | None = None, dtype: DTypeLike | None = None, keepdims: bool = False
) -> Tensor:
    """The :func:`sum` of the elements that are not NaN, 0 where there are none.

    >>> from ember_ml import ops
    >>> ops.nansum([1.0, float("nan"), 2.0]).item()
    3.0
    """
    return ops.sum(_replace_nan(x, 0.0), axis, dtype, keepdims)


@derived(_WIDE)
def nanprod(
    x: TensorLike, axis: AxisLike | None = None, dtype: DTypeLike | None = None, keepdims: bool = False
) -> Tensor:
    """The :func:`prod` of the elements that are not NaN, 1 where there are none.

    >>> from ember_ml import ops
    >>> ops.nanprod([3.0, float("nan"), 2.0]).item()
    6.0
    """
    return ops.prod(_replace_nan(x, 1.0), axis, dtype, keepdims)


@derived(_WIDE)
def nancumsum(x: TensorLike, axis: int | None = None, dtype: DTypeLike | None = None) -> Tensor:
    """The :func:`cumsum` in which NaN counts as 0.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.nancumsum([1.0, float("nan"), 2.0])).tolist()
    [1.0, 1.0, 3.0]
    """
    return ops.cumsum(_replace_nan(x, 0.0), axis, dtype)


@derived(_WIDE)
def nancumprod(x: TensorLike, axis: int | None = None, dtype: DTypeLike | None = None) -> Tensor:
    """The :func:`cumprod` in which NaN counts as 1.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.nancumprod([3.0, float("nan"), 2.0])).tolist()
    [3.0, 3.0, 6.0]
    """
    return ops.cumprod(_replace_nan(x, 1.0), axis, dtype)


@derived(FLOATING)
def nanmean(x: TensorLike, axis: AxisLike | None = None, keepdims: bool = False) -> Tensor:
    """The :func:`mean` of the elements that are not NaN; NaN where there are none.

    >>> from ember_ml import ops
    >>> ops.nanmean([1.0, float("nan"), 2.0]).item()
    1.5
    """
    wide = _at_least_float32(x)
    missing = ops.isnan(wide)
    whole = ops.sum(ops.where(missing, 0.0, wide), axis, None, keepdims)
    return ops.cast(ops.divide(whole, _freedom(missing, wide, axis, 0.0, keepdims)), x.dtype)


def _at_least_float32(x: Tensor) -> Tensor:
    return ops.cast(x, "float32") if find_dtype(x.dtype) in HALVES else x


def _freedom(missing: Tensor, x: Tensor, axis: AxisLike | None, correction: float, keepdims: bool) -> Tensor:
    """Return the number of elements less the correction, in the real dtype of ``x``; NaN where it is not positive."""
    count = ops.cast(ops.count_nonzero(ops.logical_not(missing), axis, keepdims), ops.real(x).dtype)
    freedom = ops.subtract(count, float(correction))
    return ops.where(ops.greater(freedom, 0.0), freedom, float("nan"))


@derived(FLOATING.giving("real"))
def nanvar(x: TensorLike, axis: AxisLike | None = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """The :func:`var` of the elements that are not NaN; NaN where no more than ``correction`` are.

    >>> from ember_ml import ops
    >>> ops.nanvar([1.0, float("nan"), 3.0]).item()
    1.0
    """
    wide = _at_least_float32(x)
    missing = ops.isnan(wide)
    filled = ops.where(missing, 0.0, wide)  # from here on no NaN can reach the gradient
    distance = ops.where(missing, 0.0, ops.abs(ops.subtract(filled, nanmean(wide, axis, True))))
    whole = ops.sum(ops.square(distance), axis, None, keepdims)
    result = ops.divide(whole, _freedom(missing, wide, axis, correction, keepdims))
    return ops.cast(result, x.dtype) if wide is not x else result


@derived(FLOATING.giving("real"))
def nanstd(x: TensorLike, axis: AxisLike | None = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """The :func:`std` of the elements that are not NaN; NaN where no more than ``correction`` are.

    >>> from ember_ml import ops
    >>> ops.nanstd([1.0, float("nan"), 3.0]).item()
    1.0
    """
    wide = _at_least_float32(x)  # a variance may overflow where its root does not
    variance = nanvar(wide, axis, correction, keepdims)
    is_zero = ops.equal(variance, 0)  # there the root has no gradient
    result = ops.where(is_zero, 0.0, ops.sqrt(ops.where(is_zero, 1.0, variance)))
    return ops.cast(result, x.dtype) if wide is not x else result


@derived(ORDERED)
def nanmax(
    x: TensorLike, axis: AxisLike | None = None, keepdims: bool = False, initial: TensorLike | None = None
) -> Tensor:
    """The largest element that is not NaN; NaN where all are, ``ValueError`` where there are no elements.

    With ``initial`` the result is at least that number, and that where no element counts.

    >>> from ember_ml import ops
    >>> ops.nanmax([1.0, float("nan"), 2.0]).item()
    2.0
    """
    return _extreme(ops.max, x, -_INFINITY, axis, keepdims, initial)


@derived(ORDERED)
def nanmin(
    x: TensorLike, axis: AxisLike | None = None, keepdims: bool = False, initial: TensorLike | None = None
) -> Tensor:
    """The smallest element that is not NaN; NaN where all are, ``ValueError`` where there are no elements.

    With ``initial`` the result is at most that number, and that where no element counts.

    >>> from ember_ml import ops
    >>> ops.nanmin([1.0, float("nan"), 2.0]).item()
    1.0
    """
    return _extreme(ops.min, x, _INFINITY, axis, keepdims, initial)


def _extreme(
    find: Callable[..., Tensor],
    x: Tensor,
    last: float,
    axis: AxisLike | None,
    keepdims: bool,
    initial: Tensor | None,
) -> Tensor:
    result = find(_replace_nan(x, last), axis, keepdims, initial)
    if initial is not None or not _may_be_nan(x):
        return result
    return ops.where(ops.all(ops.isnan(x), axis, keepdims), float("nan"), result)


@derived(_INDEX)
def nanargmax(x: TensorLike, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The :func:`argmax` among the elements that are not NaN; ``ValueError`` where all are, or where there are none.

    Where values cannot be read, in traced code or with the checks off, the index is 0 where all are NaN.

    >>> from ember_ml import ops
    >>> ops.nanargmax([1.0, float("nan"), 2.0]).item()
    2
    """
    return _index(ops.argmax, ops.max, x, -_INFINITY, axis, keepdims)


@derived(_INDEX)
def nanargmin(x: TensorLike, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The :func:`argmin` among the elements that are not NaN; ``ValueError`` where all are, or where there are none.

    Where values cannot be read, in traced code or with the checks off, the index is 0 where all are NaN.

    >>> from ember_ml import ops
    >>> ops.nanargmin([1.0, float("nan"), 2.0]).item()
    0
    """
    return _index(ops.argmin, ops.min, x, _INFINITY, axis, keepdims)


def _index(
    find: Callable[..., Tensor],
    extreme: Callable[..., Tensor],
    x: Tensor,
    last: float,
    axis: int | None,
    keepdims: bool,
) -> Tensor:
    if not _may_be_nan(x):
        return find(x, axis, keepdims)
    filled = _replace_nan(x, last)
    found = find(filled, axis, keepdims)
    missing = ops.isnan(x)
    if value_checks.enabled and not active().is_traced(x) and ops.item(ops.any(ops.all(missing, axis))):
        raise ValueError("there are only NaN to find the largest or smallest of")
    # an infinity that stands for NaN is no better than one that was there
    there = ops.argmax(ops.logical_not(missing), axis, keepdims)
    return ops.where(ops.equal(extreme(filled, axis, keepdims), last), there, found)
