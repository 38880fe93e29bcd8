"""Running sums and products, differences, covariance and correlation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ember_ml import ops
from ember_ml.backend.common.axes import axis_of
from ember_ml.backend.common.signal import overhang
from ember_ml.core.dtypes import HALVES, as_dtype, find_dtype
from ember_ml.dispatch.declare import derived, gradient, primitive
from ember_ml.dispatch.dtype_rules import FLOATING, NUMERIC, SAME
from ember_ml.ops.arrays.gradient_rules import helpers
from ember_ml.typing import DTypeLike, Tensor, TensorLike

__all__ = [
    "corrcoef",
    "correlate",
    "cov",
    "cumprod",
    "cumsum",
    "cumulative_prod",
    "cumulative_sum",
    "diff",
    "trapezoid",
]

_WIDE = SAME.giving("wide")


@primitive(_WIDE)
def cumsum(x: TensorLike, axis: int | None = None, dtype: DTypeLike | None = None) -> Tensor:
    """The running sum along an axis, or of the flattened tensor where axis is None.

    Signed integers and bools are added in int64, unsigned ones in uint64; half precision and float32 as accurately as
    :func:`sum` does. With ``dtype`` the elements are cast first.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.cumsum([1, 2, 3])).tolist()
    [1, 3, 6]
    """
    ...


gradient(cumsum, x=lambda g, _x, axis: _from_the_end(helpers.cast_back(g, _x), axis, _x.shape))


@primitive(_WIDE)
def cumprod(x: TensorLike, axis: int | None = None, dtype: DTypeLike | None = None) -> Tensor:
    """The running product along an axis, or of the flattened tensor where axis is None.

    Signed integers and bools are multiplied in int64, unsigned ones in uint64. With ``dtype`` the elements are cast
    first.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.cumprod([1, 2, 3, 4])).tolist()
    [1, 2, 6, 24]
    """
    ...


gradient(cumprod, x=lambda g, x, axis: _product_chain(helpers.cast_back(g, x), x, axis))


@derived(_WIDE)
def cumulative_sum(
    x: TensorLike, axis: int | None = None, dtype: DTypeLike | None = None, include_initial: bool = False
) -> Tensor:
    """The running sum along an axis, which only a 1-D tensor may leave out; with ``include_initial`` 0 comes first.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.cumulative_sum([1, 2, 3], include_initial=True)).tolist()
    [0, 1, 3, 6]
    """
    axis = _only_axis(x, axis)
    result = cumsum(x, axis, dtype)
    return _prepend(result, axis, ops.zeros) if include_initial else result


@derived(_WIDE)
def cumulative_prod(
    x: TensorLike, axis: int | None = None, dtype: DTypeLike | None = None, include_initial: bool = False
) -> Tensor:
    """The running product along an axis, which only a 1-D tensor may leave out; with ``include_initial`` 1 comes first.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.cumulative_prod([2, 3], include_initial=True)).tolist()
    [1, 2, 6]
    """
    axis = _only_axis(x, axis)
    result = cumprod(x, axis, dtype)
    return _prepend(result, axis, ops.ones) if include_initial else result


def _only_axis(x: Tensor, axis: int | None) -> int:
    if axis is None:
        if x.ndim != 1:
            raise ValueError(f"a tensor of {x.ndim} dimensions needs an axis")
        return 0
    return axis_of(axis, x.ndim)


def _prepend(x: Tensor, axis: int, create: Callable[..., Tensor]) -> Tensor:
    shape = (*x.shape[:axis], 1, *x.shape[axis + 1 :])
    return ops.concatenate([create(shape, dtype=x.dtype, device=ops.get_device(x)), x], axis)


def _part(x: Tensor, axis: int, key: slice) -> Tensor:
    return ops.get_item(x, (slice(None),) * axis + (key,))


@derived(SAME)
def diff(
    x: TensorLike,
    n: int = 1,
    axis: int = -1,
    prepend: TensorLike | None = None,
    append: TensorLike | None = None,
) -> Tensor:
    """The difference of each element and the one before it along an axis, ``n`` times over.

    Of bools, whether they differ. ``prepend`` and ``append`` are joined to ``x`` first; a scalar counts as one element.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.diff([1.0, 4.0, 9.0, 16.0], n=2)).tolist()
    [2.0, 2.0]
    """
    if n < 0:
        raise ValueError(f"differences are taken n >= 0 times, not {n}")
    axis = axis_of(axis, x.ndim)
    ends = (*x.shape[:axis], 1, *x.shape[axis + 1 :])
    parts = [part if part.ndim else ops.broadcast_to(part, ends) for part in (prepend, x, append) if part is not None]
    if len(parts) > 1:
        x = ops.concatenate(parts, axis)
    step = ops.not_equal if find_dtype(x.dtype) == "bool" else ops.subtract
    for _ in range(min(n, x.shape[axis])):
        x = step(_part(x, axis, slice(1, None)), _part(x, axis, slice(None, -1)))
    return x


@derived(FLOATING)
def trapezoid(y: TensorLike, x: TensorLike | None = None, dx: float = 1.0, axis: int = -1) -> Tensor:
    """The integral of ``y`` along an axis by the trapezoidal rule.

    ``x`` holds the sample points, 1-D or in the shape of ``y``; without it they are ``dx`` apart.

    >>> from ember_ml import ops
    >>> ops.trapezoid([1.0, 2.0, 3.0], dx=2.0).item()
    8.0
    """
    axis = axis_of(axis, y.ndim)
    if x is None:
        widths = dx
    elif x.ndim == 1:
        widths = ops.reshape(diff(x), (-1, *(1 for _ in y.shape[axis + 1 :])))
    else:
        widths = diff(x, axis=axis)
    heights = ops.add(_part(y, axis, slice(1, None)), _part(y, axis, slice(None, -1)))
    return ops.sum(ops.multiply(ops.multiply(heights, widths), 0.5), axis)


@derived(FLOATING)
def cov(
    x: TensorLike,
    y: TensorLike | None = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: TensorLike | None = None,
    aweights: TensorLike | None = None,
) -> Tensor:
    """The covariance matrix of the variables in the rows of ``x``, or in its columns where ``rowvar`` is false.

    ``y`` adds variables. The sums are divided by the number of observations less ``ddof``: 1, or 0 with ``bias``.
    ``fweights`` say how often each observation counts, ``aweights`` how much. One variable gives a scalar.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.cov([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]])).tolist()
    [[1.0, -1.0], [-1.0, 1.0]]
    """
    dtype = x.dtype
    if find_dtype(dtype) in HALVES:
        parts = (x, y, fweights, aweights)
        x, y, fweights, aweights = (part if part is None else ops.cast(part, "float32") for part in parts)
    variables = _as_rows(x, rowvar)
    if y is not None:
        variables = ops.concatenate([variables, _as_rows(y, rowvar)], 0)
    weights = fweights if aweights is None else aweights if fweights is None else ops.multiply(fweights, aweights)
    freedom_lost = ddof if ddof is not None else 0 if bias else 1
    if weights is None:
        count = variables.shape[1]
        centred = ops.subtract(variables, ops.mean(variables, 1, True))
        weighted, scale = centred, float(max(count - freedom_lost, 0))
    else:
        if tuple(weights.shape) != tuple(variables.shape[1:]):
            raise ValueError(f"{tuple(weights.shape)} weights do not fit {variables.shape[1]} observations")
        whole = ops.sum(weights)
        centred = ops.subtract(variables, ops.divide(ops.sum(ops.multiply(variables, weights), 1, None, True), whole))
        weighted = ops.multiply(centred, weights)
        each = 1.0 if aweights is None else ops.divide(ops.sum(ops.multiply(weights, aweights)), whole)
        scale = ops.maximum(ops.real(ops.subtract(whole, ops.multiply(each, float(freedom_lost)))), 0.0)
    result = ops.divide(ops.matmul(centred, ops.conj(ops.transpose(weighted))), scale)
    return ops.cast(ops.squeeze(result) if variables.shape[0] == 1 else result, dtype)


def _as_rows(x: Tensor, rowvar: bool) -> Tensor:
    if x.ndim > 2:
        raise ValueError(f"observations have one or two dimensions, not {x.ndim}")
    if x.ndim < 2:
        return ops.reshape(x, (1, -1))
    return x if rowvar else ops.transpose(x)


@derived(FLOATING)
def corrcoef(x: TensorLike, y: TensorLike | None = None, rowvar: bool = True) -> Tensor:
    """Pearson's correlation coefficients of the variables in the rows of ``x``.

    Where ``rowvar`` is false the variables are in its columns. ``y`` adds variables. One that does not vary gives
    NaN. One variable gives a scalar.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.round(ops.corrcoef([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]]), 3)).tolist()
    [[1.0, -1.0], [-1.0, 1.0]]
    """
    covariance = cov(x, y, rowvar)
    if not covariance.ndim:
        return ops.divide(covariance, covariance)
    spread = ops.sqrt(ops.real(ops.diagonal(covariance)))
    result = ops.divide(ops.divide(covariance, ops.expand_dims(spread, 1)), ops.expand_dims(spread, 0))
    return result if as_dtype(result.dtype).kind == "complex" else ops.clip(result, -1.0, 1.0)


@primitive(NUMERIC)
def correlate(x: TensorLike, y: TensorLike, mode: str = "valid") -> Tensor:
    """The cross-correlation of two 1-D tensors: the sums of ``x`` shifted, times the conjugate of ``y``.

    ``mode`` is "valid" (where they overlap wholly), "same" (as long as the longer one) or "full" (where they overlap).

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.correlate([1.0, 2.0, 3.0], [0.0, 1.0, 0.5], "same")).tolist()
    [2.0, 3.5, 3.0]
    """
    ...


gradient(
    correlate,
    holomorphic=False,
    x=lambda g, _x, y, mode: correlate(_all_shifts(g, _x, y, mode), ops.conj(ops.flip(y)), "valid"),
    y=lambda g, x, _y, mode: ops.flip(correlate(ops.conj(_all_shifts(g, x, _y, mode)), ops.conj(x), "valid")),
)


def _all_shifts(g: Tensor, x: Any, y: Any, mode: str) -> Tensor:
    """Return the gradient of a correlation, as that of the mode "full"."""
    before, after = overhang(x.shape, y.shape, mode)
    m, n = x.shape[0], y.shape[0]
    first = n - 1 - before if m >= n else m - 1 - after
    return ops.pad(g, [(first, m + n - 1 - first - g.shape[0])])


def _from_the_end(g: Tensor, axis: int | None, shape: tuple[int, ...]) -> Tensor:
    """Return the sums of the gradient from each place to the end."""
    along = 0 if axis is None else axis
    return ops.reshape(ops.flip(cumsum(ops.flip(g, along), along), along), shape)


def _product_chain(g: Tensor, x: Tensor, axis: int | None) -> Tensor:
    """Return the gradient of cumulative products by a recurrence from the end, without division by zeros."""
    along = 0 if axis is None else axis
    flat = ops.ravel(x) if axis is None else x
    if not flat.shape[along]:
        return ops.zeros_like(x)
    factors, gradients = ops.unstack(flat, along), ops.unstack(g, along)
    tails = [gradients[-1]]
    for factor, one in zip(factors[:0:-1], gradients[-2::-1], strict=True):
        tails.append(ops.add(one, ops.multiply(factor, tails[-1])))
    before = [ops.ones_like(factors[0])]
    for factor in factors[:-1]:
        before.append(ops.multiply(before[-1], factor))
    parts = [ops.multiply(left, right) for left, right in zip(before, tails[::-1], strict=True)]
    return ops.reshape(ops.stack(parts, along), tuple(x.shape))
