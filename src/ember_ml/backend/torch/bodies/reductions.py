"""Reductions, on PyTorch."""

# torch 2.13: sums pairwise along one axis or along memory, but not over several axes that are apart in memory.
# torch 2.13: the axes () mean all axes (pytorch#29137); products take one axis; unsigned integers are summed as signed.

from __future__ import annotations

from typing import Any

import torch

from ember_ml.backend.common.axes import axes_of, check_initial, check_scalar_axis, count_along, reduced_shape
from ember_ml.backend.contract import Body, ByDType
from ember_ml.backend.torch.gradients import is_inside_transform
from ember_ml.backend.torch.half_precision import HALVES
from ember_ml.backend.torch.host_transfer import cast
from ember_ml.backend.torch.unsigned import ordered
from ember_ml.core import dtypes as dt
from ember_ml.core.dtypes import EmberDType

Tensor = torch.Tensor
_UNSIGNED = (torch.uint8, torch.uint16, torch.uint32, torch.uint64)


def through_float32(native: Body) -> Body:
    """Wrap ``native`` to compute half precision in float32 and cast a float32 result back."""

    def body(x: Tensor, *args: Any) -> Any:
        result = native(x.to(torch.float32), *args)
        return result.to(x.dtype) if result.dtype is torch.float32 else result

    return body


def accumulating(native: Body) -> ByDType:
    """Wrap ``native(x, axis, dtype, ...)`` to accumulate in float32 or 64 bits, or in the requested dtype."""

    def body(x: Tensor, axis: Any, dtype: torch.dtype | None, *rest: Any) -> Tensor:
        if dtype is not None:
            x = cast(x, dtype)
        if x.dtype in HALVES:
            result = native(x.to(torch.float32), axis, None, *rest).to(x.dtype)
        elif x.dtype in _UNSIGNED:
            signed = x.view(torch.int64) if x.dtype is torch.uint64 else x.to(torch.int64)
            result = native(signed, axis, None, *rest).view(torch.uint64)
        else:
            result = native(x, axis, None, *rest)
        return result if dtype is None else cast(result, dtype)

    return ByDType(native, dict.fromkeys(dt.HALVES | dt.UNSIGNED, body), body)


def widen(x: Tensor) -> Tensor:
    """Cast integers and bools to int64."""
    return x if x.is_floating_point() or x.is_complex() else x.to(torch.int64)


def total(x: Tensor, axis: Any, keepdims: bool) -> Tensor:
    """Return the sum over any axes, one at a time where they are apart in memory."""
    axes = axes_of(axis, x.ndim)
    if not axes:
        return widen(x)
    if x.is_contiguous() and axes[-1] - axes[0] < len(axes):
        return torch.sum(x, axes, keepdims)
    for one in sorted(axes, key=lambda i: (-x.shape[i], -i)):
        x = torch.sum(x, one, True)
    return x if keepdims else x.squeeze(axes)


def _sum(x: Tensor, axis: Any, dtype: None, keepdims: bool) -> Tensor:
    if not x.ndim:
        check_scalar_axis(axis)
    if type(axis) is int or (axis is None and x.is_contiguous()):
        return torch.sum(x, axis, keepdims)
    return total(x, axis, keepdims)


def _prod(x: Tensor, axis: Any, dtype: None, keepdims: bool) -> Tensor:
    if not x.ndim:
        check_scalar_axis(axis)
    if type(axis) is int:
        return torch.prod(x, axis, keepdims)
    if axis is None and not keepdims:
        return torch.prod(x)
    axes = axes_of(axis, x.ndim)
    x = widen(x)
    for one in axes:
        x = torch.prod(x, one, True)
    return x if keepdims or not axes else x.squeeze(axes)


def mean(x: Tensor, axis: Any, keepdims: bool) -> Tensor:
    if not x.ndim:
        check_scalar_axis(axis)
    if type(axis) is int or (axis is None and x.is_contiguous()):
        return torch.mean(x, axis, keepdims)
    if x.dtype in HALVES:
        return mean(x.to(torch.float32), axis, keepdims).to(x.dtype)
    return total(x, axis, keepdims) / count_along(x.shape, axis)


def _var(x: Tensor, axis: Any, correction: float, keepdims: bool) -> Tensor:
    if axis != () and count_along(x.shape, axis) > correction:
        return torch.var(x, axis, correction=correction, keepdim=keepdims)
    # torch 2.13: warns where there is nothing to divide by
    deviation = x - mean(x, axis, True)
    square = deviation * deviation if not x.is_complex() else deviation.real.square() + deviation.imag.square()
    freedom = count_along(x.shape, axis) - correction
    return total(square, axis, keepdims) / torch.tensor(freedom if freedom > 0 else 0.0, dtype=square.dtype)


def _std(x: Tensor, axis: Any, correction: float, keepdims: bool) -> Tensor:
    if axis == () and correction == 0:
        return torch.abs(x.real * 0)  # the root of the variance, which is 0, has no slope
    if axis == () or count_along(x.shape, axis) <= correction:
        return torch.sqrt(_var(x, axis, correction, keepdims))
    if not (x.requires_grad or is_inside_transform()):
        return torch.std(x, axis, correction=correction, keepdim=keepdims)
    # torch 2.13: the gradient at equal elements is that of the rounding error of their mean, the second derivative NaN
    variance = torch.var(x - torch.mean(x, axis, True), axis, correction=correction, keepdim=keepdims)
    is_zero = variance == 0
    return torch.where(is_zero, 0, torch.sqrt(torch.where(is_zero, 1, variance)))


def _extreme(of_all: Body, along: Body, join: Body) -> Body:
    def body(x: Tensor, axis: Any, keepdims: bool, initial: Tensor | None) -> Tensor:
        if initial is not None:
            check_initial(initial)
            if not x.numel():
                return initial.expand(reduced_shape(x.shape, axes_of(axis, x.ndim), keepdims)).clone()
            return join(body(x, axis, keepdims, None), initial)
        if axis == ():
            return x
        if not x.ndim:
            check_scalar_axis(axis)
        try:
            if axis is None and not keepdims:
                return of_all(x)
            return along(x, () if axis is None else axis, keepdims)
        except (IndexError, RuntimeError) as error:
            raise _explain(error, x) from error

    return body


def _index(native: Body) -> Body:
    def body(x: Tensor, axis: int | None, keepdims: bool) -> Tensor:
        if not x.ndim:
            check_scalar_axis(axis)
        try:
            if axis is None and keepdims:  # torch 2.13: loses the axes under vmap
                return native(x).reshape((1,) * x.ndim)
            return native(x, axis, keepdims)
        except (IndexError, RuntimeError) as error:
            raise _explain(error, x) from error

    return body


def _explain(error: Exception, x: Tensor) -> Exception:
    return error if x.numel() else ValueError(f"there are no elements to take the largest or smallest of ({error})")


def _of_bool(native: Body) -> Body:
    """Wrap ``native`` to compute bools in uint8."""
    # torch 2.13: argmax and argmin refuse bools; torch 2.11: vmap cannot view them as another dtype

    def body(x: Tensor, *args: Any) -> Tensor:
        return native(x.to(torch.uint8), *args)

    return body


def _all(x: Tensor, axis: Any, keepdims: bool) -> Tensor:
    if not x.ndim:
        check_scalar_axis(axis)
    return x.to(torch.bool) if axis == () else torch.all(x, axis, keepdims)


def _any(x: Tensor, axis: Any, keepdims: bool) -> Tensor:
    if not x.ndim:
        check_scalar_axis(axis)
    return x.to(torch.bool) if axis == () else torch.any(x, axis, keepdims)


def _of_unsigned(native: Body) -> dict[EmberDType, Body]:
    """Wrap ``native`` for unsigned integers."""
    # torch 2.13: all and any return uint8 for uint8

    def body(x: Tensor, *args: Any) -> Tensor:
        return native(x.to(torch.bool), *args)

    return dict.fromkeys(dt.UNSIGNED, body)


def count_nonzero(x: Tensor, axis: Any, keepdims: bool) -> Tensor:
    if not x.ndim:
        check_scalar_axis(axis)
    x = x.to(torch.bool)
    return x.to(torch.int64) if axis == () else torch.sum(x, axis, keepdims)


def _logsumexp(x: Tensor, axis: Any, keepdims: bool) -> Tensor:
    if axis == ():
        return x
    axes = axes_of(axis, x.ndim)
    if not ((x.requires_grad or is_inside_transform()) and x.numel()):
        return torch.logsumexp(x, axes, keepdims)
    # torch 2.13: the gradient is NaN where all elements are minus infinity (pytorch#49724)
    top = x.detach().amax(axes, keepdim=True)
    top = torch.where(torch.isfinite(top), top, 0)
    whole = torch.exp(x - top).sum(axes, keepdim=True)
    is_zero = whole == 0
    result = torch.where(is_zero, -torch.inf, torch.log(torch.where(is_zero, 1, whole)) + top)
    return result if keepdims else result.reshape(reduced_shape(x.shape, axes, keepdims=False))


_half_logsumexp = through_float32(_logsumexp)
_argmax, _argmin = _index(torch.argmax), _index(torch.argmin)
_max = _extreme(torch.max, torch.amax, torch.maximum)
_min = _extreme(torch.min, torch.amin, torch.minimum)

sum = accumulating(_sum)
all = ByDType(_all, _of_unsigned(_all))
any = ByDType(_any, _of_unsigned(_any))
prod = accumulating(_prod)
var = ByDType(_var, dict.fromkeys(dt.HALVES, through_float32(_var)))
std = ByDType(_std, dict.fromkeys(dt.HALVES, through_float32(_std)))
logsumexp = ByDType(_logsumexp, dict.fromkeys(dt.HALVES, _half_logsumexp))
max = ByDType(_max, ordered(_max))
min = ByDType(_min, ordered(_min))
argmax = ByDType(_argmax, {**ordered(_argmax, values=False), dt.bool_: _of_bool(_argmax)})
argmin = ByDType(_argmin, {**ordered(_argmin, values=False), dt.bool_: _of_bool(_argmin)})
