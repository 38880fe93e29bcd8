"""Convolutions over one, two or three spatial dimensions.

Tensors are (batch, ..., channels), with the spatial dimensions in between; ``data_format="channels_first"`` takes and
gives (batch, channels, ...) instead. Kernels are the same for both. As in every library for neural networks the kernel
is not mirrored. ``padding`` is "valid" (none), "same" (zeros around, so that a stride of 1 keeps the size and a stride
of s gives a size of n / s, rounded up; where their number is odd, one more after than before), "causal" (one dimension
only: all zeros before, so that no result depends on what comes later), or numbers of zeros: one for all sides, or for
each dimension one or a pair (before, after). ``strides`` and ``dilation_rate`` are one number, or one for each
dimension.

Integers are computed in float32. Half precision adds up in float32 and is rounded once; it does not mix with wider
floats.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ember_ml import ops
from ember_ml.backend.common.convolution import (
    Convolution,
    Transposed,
    convolution,
    is_channels_first,
    transposed_convolution,
    undo_transpose,
    windowed_convolution,
)
from ember_ml.dispatch.declare import derived, gradient
from ember_ml.dispatch.dtype_rules import REAL_CONTRACTION
from ember_ml.dispatch.half_precision import in_float32, is_half
from ember_ml.ops.arrays.gradient_rules.convolution import input_gradient, kernel_gradient, spread_by
from ember_ml.typing import Tensor, TensorLike

__all__ = ["conv", "conv_transpose", "depthwise_conv", "separable_conv"]


@derived(REAL_CONTRACTION)
def conv(
    x: TensorLike,
    kernel: TensorLike,
    strides: int | Sequence[int] = 1,
    padding: Any = "valid",
    data_format: str = "channels_last",
    dilation_rate: int | Sequence[int] = 1,
) -> Tensor:
    """The convolution (cross-correlation) of ``x`` with ``kernel``.

    ``kernel`` has the shape (window..., channels, results). If it takes fewer channels than ``x`` has, those are
    convolved in groups: the first channels give the first results, and so on.

    >>> from ember_ml import ops
    >>> x = ops.reshape(ops.array([1.0, 2.0, 3.0, 4.0]), (1, 4, 1))
    >>> kernel = ops.reshape(ops.array([1.0, 10.0]), (2, 1, 1))
    >>> ops.to_numpy(ops.conv(x, kernel)).ravel().tolist()
    [21.0, 32.0, 43.0]
    >>> ops.to_numpy(ops.conv(x, kernel, padding="same")).ravel().tolist()
    [21.0, 32.0, 43.0, 4.0]
    """
    plan = convolution(x.shape, kernel.shape, strides, padding, data_format, dilation_rate)
    if is_half(x):
        return in_float32(conv, x, kernel, strides, padding, data_format, dilation_rate)
    first = is_channels_first(data_format, x.ndim)
    return _restore_layout(windowed_convolution(ops, _last(x, first), kernel, plan), first)


def _conv_by_x(
    g: Tensor, _x: Tensor, kernel: Tensor, strides: Any, padding: Any, data_format: str, dilation_rate: Any
) -> Tensor:
    plan = convolution(_x.shape, kernel.shape, strides, padding, data_format, dilation_rate)
    first = is_channels_first(data_format, _x.ndim)
    sizes = _x.shape[2:] if first else _x.shape[1:-1]
    return _restore_layout(input_gradient(_last(g, first), kernel, plan, sizes), first)


def _conv_by_kernel(
    g: Tensor, x: Tensor, _kernel: Tensor, strides: Any, padding: Any, data_format: str, dilation_rate: Any
) -> Tensor:
    plan = convolution(x.shape, _kernel.shape, strides, padding, data_format, dilation_rate)
    first = is_channels_first(data_format, x.ndim)
    return kernel_gradient(_last(g, first), _last(x, first), plan)


def _last(x: Tensor, first: bool) -> Tensor:
    """Return ``x`` with its channels last."""
    return ops.moveaxis(x, 1, -1) if first else x


def _restore_layout(x: Tensor, first: bool) -> Tensor:
    return ops.moveaxis(x, -1, 1) if first else x


gradient(conv, x=_conv_by_x, kernel=_conv_by_kernel)


@derived(REAL_CONTRACTION)
def depthwise_conv(
    x: TensorLike,
    kernel: TensorLike,
    strides: int | Sequence[int] = 1,
    padding: Any = "valid",
    data_format: str = "channels_last",
    dilation_rate: int | Sequence[int] = 1,
) -> Tensor:
    """Each channel convolved by itself, with its own windows; ``kernel`` has the shape (window..., channels, windows).

    The results of the first channel come first.

    >>> from ember_ml import ops
    >>> x = ops.reshape(ops.array([1.0, 10.0, 2.0, 20.0, 3.0, 30.0]), (1, 3, 2))
    >>> kernel = ops.reshape(ops.array([1.0, 1.0, 1.0, -1.0]), (2, 2, 1))
    >>> ops.to_numpy(ops.depthwise_conv(x, kernel)).tolist()
    [[[3.0, -10.0], [5.0, -10.0]]]
    """
    channels = x.shape[1 if is_channels_first(data_format, x.ndim) else -1]
    if kernel.ndim != x.ndim or kernel.shape[-2] != channels:
        raise ValueError(
            f"the kernel of a depthwise convolution has the shape (window..., {channels}, windows per channel), "
            f"not {tuple(kernel.shape)}"
        )
    grouped = ops.reshape(kernel, (*kernel.shape[:-2], 1, math.prod(kernel.shape[-2:])))
    return conv(x, grouped, strides, padding, data_format, dilation_rate)


@derived(REAL_CONTRACTION)
def separable_conv(
    x: TensorLike,
    depthwise_kernel: TensorLike,
    pointwise_kernel: TensorLike,
    strides: int | Sequence[int] = 1,
    padding: Any = "valid",
    data_format: str = "channels_last",
    dilation_rate: int | Sequence[int] = 1,
) -> Tensor:
    """A :func:`depthwise_conv` followed by a :func:`conv` whose window is one element: it mixes the channels.

    >>> from ember_ml import ops
    >>> x = ops.reshape(ops.array([1.0, 10.0, 2.0, 20.0, 3.0, 30.0]), (1, 3, 2))
    >>> each = ops.reshape(ops.array([1.0, 1.0, 1.0, -1.0]), (2, 2, 1))
    >>> mix = ops.reshape(ops.array([1.0, 0.5]), (1, 2, 1))
    >>> ops.to_numpy(ops.separable_conv(x, each, mix)).tolist()
    [[[-2.0], [0.0]]]
    """
    window = tuple(pointwise_kernel.shape[:-2])
    if any(size != 1 for size in window):
        raise ValueError(f"the window of the pointwise kernel is one element, not {window}")
    kernels = depthwise_kernel, pointwise_kernel
    if is_half(x):
        return in_float32(separable_conv, x, *kernels, strides, padding, data_format, dilation_rate)
    each = depthwise_conv(x, depthwise_kernel, strides, padding, data_format, dilation_rate)
    return conv(each, pointwise_kernel, 1, "valid", data_format, 1)


@derived(REAL_CONTRACTION)
def conv_transpose(
    x: TensorLike,
    kernel: TensorLike,
    strides: int | Sequence[int] = 1,
    padding: Any = "valid",
    output_padding: int | Sequence[int] | None = None,
    data_format: str = "channels_last",
    dilation_rate: int | Sequence[int] = 1,
) -> Tensor:
    """A convolution turned around: each element of ``x`` adds its multiple of ``kernel`` to the result.

    ``kernel`` has the shape (window..., results, channels). A size n becomes n * stride with padding "same" and
    (n - 1) * stride + max(span, stride) with "valid", where the span is that of the dilated window. Numbers are cut off
    the ends of the full result, whose size is (n - 1) * stride + span. ``output_padding`` adds to the end: to the full
    result, or with "same" to (n - 1) * stride + span % 2.

    >>> from ember_ml import ops
    >>> x = ops.reshape(ops.array([1.0, 2.0]), (1, 2, 1))
    >>> kernel = ops.reshape(ops.array([1.0, 10.0, 100.0]), (3, 1, 1))
    >>> ops.to_numpy(ops.conv_transpose(x, kernel)).ravel().tolist()
    [1.0, 12.0, 120.0, 200.0]
    >>> ops.to_numpy(ops.conv_transpose(x, kernel, strides=2, padding="same")).ravel().tolist()
    [1.0, 10.0, 102.0, 20.0]
    """
    plan = transposed_convolution(x.shape, kernel.shape, strides, padding, output_padding, data_format, dilation_rate)
    if is_half(x):
        return in_float32(conv_transpose, x, kernel, strides, padding, output_padding, data_format, dilation_rate)
    first = is_channels_first(data_format, x.ndim)
    return _restore_layout(spread_by(_last(x, first), kernel, plan), first)


def _transpose_by_x(
    g: Tensor,
    _x: Tensor,
    kernel: Tensor,
    strides: Any,
    padding: Any,
    output_padding: Any,
    data_format: str,
    dilation_rate: Any,
) -> Tensor:
    how = strides, padding, output_padding, data_format, dilation_rate
    plan, first = transposed_convolution(_x.shape, kernel.shape, *how), is_channels_first(data_format, _x.ndim)
    back = undo_transpose(plan, kernel.shape[:-2], _x.shape[2:] if first else _x.shape[1:-1])
    seen = _crop_added(_last(g, first), plan)
    return _restore_layout(conv(seen, kernel, back.strides, back.padding, "channels_last", back.dilations), first)


def _transpose_by_kernel(
    g: Tensor,
    x: Tensor,
    _kernel: Tensor,
    strides: Any,
    padding: Any,
    output_padding: Any,
    data_format: str,
    dilation_rate: Any,
) -> Tensor:
    how = strides, padding, output_padding, data_format, dilation_rate
    plan, first = transposed_convolution(x.shape, _kernel.shape, *how), is_channels_first(data_format, x.ndim)
    x = _last(x, first)
    back = undo_transpose(plan, _kernel.shape[:-2], x.shape[1:-1])
    return kernel_gradient(x, _crop_added(_last(g, first), plan), Convolution(back, 1))


def _crop_added(g: Tensor, plan: Transposed) -> Tensor:
    """Return ``g`` without what belongs to the zeros that were added after the result."""
    added = (min(after, 0) for _, after in plan.crops)
    return g[(slice(None), *(slice(size + more) for size, more in zip(plan.results, added, strict=True)))]


gradient(conv_transpose, x=_transpose_by_x, kernel=_transpose_by_kernel)
