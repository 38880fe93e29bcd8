"""Resizing of images: each row and column becomes a weighted sum of its elements, by one matrix product per axis.

Images are (height, width, channels) or (batch, height, width, channels); ``data_format="channels_first"`` takes and
gives (channels, height, width) instead. Integers are computed in float32, rounded to the nearest, ties to even, and cut
off at the range of their dtype; half precision is computed in float32.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ember_ml import ops
from ember_ml.backend.common.axes import axes_of
from ember_ml.backend.common.images import (
    aspect_margins,
    check_choice,
    image_axes,
    nearest_places,
    pair,
    resize_weights,
    sample_weights,
)
from ember_ml.backend.random.draw import constant
from ember_ml.core.dtypes import as_dtype
from ember_ml.dispatch.declare import derived
from ember_ml.dispatch.dtype_rules import KEEP_REAL, REAL
from ember_ml.ops.image.pixels import as_filler, dtype_of, from_float, to_float
from ember_ml.typing import Tensor, TensorLike

__all__ = ["resize", "scale_and_translate"]

_INTERPOLATIONS = ("nearest", "bilinear", "bicubic", "lanczos3", "lanczos5")


@derived(REAL)
def resize(
    images: TensorLike,
    size: int | Sequence[int],
    interpolation: str = "bilinear",
    antialias: bool = False,
    crop_to_aspect_ratio: bool = False,
    pad_to_aspect_ratio: bool = False,
    fill_value: float = 0.0,
    data_format: str = "channels_last",
) -> Tensor:
    """The images in another size: ``size`` is (height, width), or one number for both.

    The images cover the same area before and after, and what an element shows is at its centre. ``interpolation`` is
    "nearest" (the element whose area holds the centre), "bilinear", "bicubic" (of Keys, with a = -1/2), "lanczos3" or
    "lanczos5". ``antialias`` makes the kernel wider where images become smaller, so that all elements take part; it
    changes nothing for "nearest". At the edges the weights of elements that exist are scaled to the sum 1. Where
    the aspect ratio changes, the images are distorted; ``crop_to_aspect_ratio`` first cuts them to the new one around
    their centre, ``pad_to_aspect_ratio`` adds ``fill_value`` at both sides instead.

    >>> from ember_ml import ops
    >>> x = ops.reshape(ops.array([0.0, 1.0, 2.0, 3.0]), (2, 2, 1))
    >>> ops.to_numpy(ops.resize(x, (2, 4)))[:, :, 0].tolist()
    [[0.0, 0.25, 0.75, 1.0], [2.0, 2.25, 2.75, 3.0]]
    >>> ops.to_numpy(ops.resize(x, 3, interpolation="nearest"))[:, :, 0].tolist()
    [[0.0, 1.0, 1.0], [2.0, 3.0, 3.0], [2.0, 3.0, 3.0]]
    """
    check_choice(interpolation, _INTERPOLATIONS, "interpolation")
    axes = image_axes(images.shape, data_format)[:2]
    target = pair(size, "size")
    if 0 in (images.shape[axes[0]], images.shape[axes[1]]):
        raise ValueError(f"images of shape {tuple(images.shape)} have no elements to resize")
    if crop_to_aspect_ratio and pad_to_aspect_ratio:
        raise ValueError("crop_to_aspect_ratio and pad_to_aspect_ratio exclude each other")
    if crop_to_aspect_ratio or pad_to_aspect_ratio:
        images = _fit_aspect(images, axes, target, crop_to_aspect_ratio, fill_value)
    # the axis that loses most elements first: the second product is then smaller
    steps = sorted(zip(axes, target, strict=True), key=lambda step: step[1] / images.shape[step[0]])
    steps = [(axis, length) for axis, length in steps if images.shape[axis] != length]
    if interpolation == "nearest":
        for axis, length in steps:
            places = constant(nearest_places, ops.get_device(images), images.shape[axis], length)
            images = ops.take(images, places, axis)
        return images
    if not steps:
        return images
    dtype, x = dtype_of(images), to_float(images)
    for axis, length in steps:
        options = as_dtype(x.dtype).name, x.shape[axis], length, interpolation, antialias
        x = _weigh_axis(x, constant(resize_weights, ops.get_device(x), *options), axis)
    return from_float(x, dtype)


def _fit_aspect(x: Tensor, axes: Sequence[int], target: tuple[int, int], crop: bool, fill_value: float) -> Tensor:
    """Cut off or add elements at both sides of one axis, so that the aspect ratio becomes that of the target."""
    margins = aspect_margins((x.shape[axes[0]], x.shape[axes[1]]), target, crop)
    for axis, (before, after) in zip(axes, margins, strict=True):
        if before or after:
            if crop:
                x = ops.get_item(x, (slice(None),) * axis + (slice(before, x.shape[axis] - after),))
            else:
                widths = [(0, 0)] * len(x.shape)
                widths[axis] = before, after
                x = ops.pad(x, widths, constant_values=as_filler(fill_value, as_dtype(x.dtype)))
    return x


def _weigh_axis(x: Tensor, weights: Tensor, axis: int) -> Tensor:
    """Replace an axis by weighted sums along it: a matrix for all images, or one for each of a batch."""
    shape = tuple(x.shape)
    before, after = math.prod(shape[:axis]), math.prod(shape[axis + 1 :])
    batch = len(weights.shape) - 2
    if axis == batch or before <= after:  # large matrices on the right: no axis must move
        flat = ops.reshape(x, (*shape[: axis + 1], after))
        if batch:
            weights = ops.reshape(weights, (weights.shape[0], *(1,) * (axis - 1), *weights.shape[1:]))
        return ops.reshape(ops.matmul(weights, flat), (*shape[:axis], weights.shape[-2], *shape[axis + 1 :]))
    turned = ops.matrix_transpose(weights)
    if batch:
        turned = ops.reshape(turned, (turned.shape[0], *(1,) * (len(shape) - 3), *turned.shape[1:]))
    return ops.moveaxis(ops.matmul(ops.moveaxis(x, axis, -1), turned), -1, axis)


@derived(KEEP_REAL)
def scale_and_translate(
    images: TensorLike,
    output_shape: Sequence[int],
    scale: TensorLike,
    translation: TensorLike,
    spatial_dims: Sequence[int],
    method: str,
    antialias: bool = True,
) -> Tensor:
    """The images scaled, then moved by ``translation`` elements, along the axes ``spatial_dims``.

    What was at x comes to ``x * scale + translation``, where an element has its centre at its index plus one half.
    ``scale`` and ``translation`` have a number for each of ``spatial_dims``; of shape (batch, numbers) they are those
    of each image along axis 0. ``output_shape`` is the whole shape of the result. ``method`` is "linear", "cubic",
    "lanczos3" or "lanczos5" ("bilinear", "trilinear", "bicubic" and "tricubic" are other names). ``antialias`` makes
    the kernel wider where images become smaller. Places outside of the images are 0. The gradient reaches ``scale``
    and ``translation`` too.

    >>> from ember_ml import ops
    >>> x = ops.array([[0.0], [2.0], [4.0], [6.0]])
    >>> ops.to_numpy(ops.scale_and_translate(x, (4, 1), [1.0], [1.0], (0,), "linear")).ravel().tolist()
    [0.0, 0.0, 2.0, 4.0]
    """
    dtype, shape = dtype_of(images), tuple(images.shape)
    axes = [axes_of(axis, len(shape))[0] for axis in spatial_dims]
    is_batch = len(scale.shape) == 2
    wanted = (shape[0], len(axes)) if is_batch else (len(axes),)
    if tuple(scale.shape) != wanted or tuple(translation.shape) != wanted or (is_batch and 0 in axes):
        raise ValueError(
            f"scale {tuple(scale.shape)} and translation {tuple(translation.shape)} must have a number for each of the "
            f"{len(axes)} spatial_dims, or a row of them for each image along axis 0"
        )
    others = [axis for axis in range(len(shape)) if axis not in axes]
    if len(output_shape) != len(shape) or any(output_shape[axis] != shape[axis] for axis in others):
        raise ValueError(f"output_shape {tuple(output_shape)} differs from {shape} outside of spatial_dims {axes}")
    x = to_float(images)
    scale, translation = (ops.cast(number, x.dtype) for number in (scale, translation))
    options: dict[str, Any] = {"dtype": x.dtype, "device": ops.get_device(x)}
    for number, axis in enumerate(axes):
        places = ops.reshape(ops.arange(output_shape[axis], **options), (-1, 1))
        elements = ops.arange(shape[axis], **options)
        key = (slice(None), slice(number, number + 1), None) if is_batch else (number,)
        factor, move = ops.get_item(scale, key), ops.get_item(translation, key)
        x = _weigh_axis(x, sample_weights(ops, places, elements, factor, move, method, antialias), axis)
    return from_float(x, dtype)
