"""Blurring of images, and how alike two are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ember_ml import ops
from ember_ml.backend.common.images import bell_weights, image_axes, pair
from ember_ml.dispatch.declare import derived
from ember_ml.dispatch.dtype_rules import REAL, REAL_FLOATING
from ember_ml.dispatch.half_precision import in_float32, is_half
from ember_ml.ops.image.pixels import dtype_of, from_float, to_float
from ember_ml.typing import Tensor, TensorLike

__all__ = ["gaussian_blur", "psnr", "ssim"]


@derived(REAL)
def gaussian_blur(
    images: TensorLike,
    kernel_size: int | Sequence[int] = (3, 3),
    sigma: float | Sequence[float] = (1.0, 1.0),
    data_format: str = "channels_last",
) -> Tensor:
    """The images blurred with a Gaussian; outside of them there is 0.

    ``kernel_size`` and ``sigma``, its number of elements and its standard deviation, are for (width, height), in this
    order, as Keras and torchvision compute them, or one number for both. Integers are computed in float32, rounded to
    the nearest, ties to even.

    >>> from ember_ml import ops
    >>> x = ops.reshape(ops.array([0.0, 0.0, 1.0, 0.0, 0.0]), (1, 5, 1))
    >>> [round(number, 3) for number in ops.to_numpy(ops.gaussian_blur(x, (3, 1))).ravel().tolist()]
    [0.0, 0.274, 0.452, 0.274, 0.0]
    """
    height, width, _ = image_axes(images.shape, data_format)
    lengths = pair(kernel_size, "kernel_size")
    is_number = isinstance(sigma, int | float) or getattr(sigma, "ndim", 1) == 0
    spreads = [float(sigma)] * 2 if is_number else [float(item) for item in sigma]  # type: ignore[arg-type,union-attr]
    if len(spreads) != 2:
        raise ValueError(f"sigma is one number, or two for width and height, not {sigma!r}")
    dtype, x = dtype_of(images), to_float(images)
    for axis, length, spread in zip((width, height), lengths, spreads, strict=True):
        widths = [(0, 0)] * len(x.shape)
        widths[axis] = (length - 1) // 2, length // 2
        x = _weigh_neighbours(ops.pad(x, widths), bell_weights(length, spread), axis)
    return from_float(x, dtype)


def _weigh_neighbours(x: Tensor, weights: Sequence[float], axis: int) -> Tensor:
    """Return the weighted sums of as many neighbours along an axis, wherever all of them exist."""
    total: Any = None
    count = x.shape[axis] - len(weights) + 1
    for start, weight in enumerate(weights):
        part = ops.get_item(x, (slice(None),) * axis + (slice(start, start + count),))
        part = ops.multiply(part, weight)
        total = part if total is None else ops.add(total, part)
    return total


@derived(REAL_FLOATING)
def psnr(x: TensorLike, y: TensorLike, max_val: float) -> Tensor:
    """The peak signal-to-noise ratio of all elements, ``10 log10(max_val**2 / mean((x - y)**2))``, in decibels.

    ``max_val`` is the largest value that an element can have. Of equal tensors it is infinite.

    >>> from ember_ml import ops
    >>> round(ops.item(ops.psnr(ops.zeros((4, 4)), ops.full((4, 4), 0.1), max_val=1.0)), 3)
    20.0
    """
    if tuple(x.shape) != tuple(y.shape):
        raise ValueError(f"two tensors of one shape are needed, not {tuple(x.shape)} and {tuple(y.shape)}")
    if not max_val > 0:
        raise ValueError(f"max_val must be positive, not {max_val}")
    if is_half(x):
        return in_float32(psnr, x, y, max_val)
    error = ops.mean(ops.square(ops.subtract(x, y)))
    return ops.subtract(20 * math.log10(max_val), ops.multiply(ops.log10(error), 10.0))


@derived(REAL_FLOATING)
def ssim(
    x: TensorLike,
    y: TensorLike,
    max_val: float = 1.0,
    filter_size: int = 11,
    filter_sigma: float = 1.5,
    k1: float = 0.01,
    k2: float = 0.03,
    data_format: str = "channels_last",
) -> Tensor:
    """The structural similarity of two images, or of each pair of two batches: 1 for equal ones, from -1 on.

    Means, variances and covariance of each neighbourhood are weighted with a Gaussian of ``filter_size`` elements and
    the standard deviation ``filter_sigma``; only whole neighbourhoods count. ``max_val`` is the largest value that an
    element can have, ``k1`` and ``k2`` keep the divisions stable (Wang and others, 2004).

    >>> from ember_ml import ops
    >>> x = ops.square(ops.reshape(ops.sin(ops.arange(0.0, 14.4, 0.1)), (12, 12, 1)))
    >>> round(ops.item(ops.ssim(x, x)), 4), ops.item(ops.ssim(x, ops.subtract(1.0, x))) < 0
    (1.0, True)
    """
    if tuple(x.shape) != tuple(y.shape):
        raise ValueError(f"two tensors of one shape are needed, not {tuple(x.shape)} and {tuple(y.shape)}")
    axes = image_axes(x.shape, data_format)
    if min(x.shape[axes[0]], x.shape[axes[1]]) < filter_size:
        raise ValueError(f"images of shape {tuple(x.shape)} hold no neighbourhood of {filter_size} x {filter_size}")
    if is_half(x):
        return in_float32(ssim, x, y, max_val, filter_size, filter_sigma, k1, k2, data_format)
    weights = bell_weights(filter_size, filter_sigma)

    def smooth(image: Tensor) -> Tensor:
        return _weigh_neighbours(_weigh_neighbours(image, weights, axes[0]), weights, axes[1])

    first, second = (k1 * max_val) ** 2, (k2 * max_val) ** 2
    mean_x, mean_y = smooth(x), smooth(y)
    squares, cross = ops.add(ops.square(mean_x), ops.square(mean_y)), ops.multiply(mean_x, mean_y)
    variances = ops.subtract(smooth(ops.add(ops.square(x), ops.square(y))), squares)
    covariance = ops.subtract(smooth(ops.multiply(x, y)), cross)
    luminance = ops.divide(ops.add(ops.multiply(cross, 2.0), first), ops.add(squares, first))
    structure = ops.divide(ops.add(ops.multiply(covariance, 2.0), second), ops.add(variances, second))
    return ops.mean(ops.multiply(luminance, structure), axis=axes)
