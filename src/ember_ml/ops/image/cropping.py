"""Cropping, padding and cutting of images.

Images are (height, width, channels) or (batch, height, width, channels); ``data_format="channels_first"`` takes and
gives (channels, height, width) instead. The numbers stay what they are, in any dtype.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

from ember_ml import ops
from ember_ml.backend.common.convolution import per_dimension
from ember_ml.backend.common.images import check_choice, image_axes, pair
from ember_ml.core.dtypes import as_dtype
from ember_ml.dispatch.declare import derived
from ember_ml.dispatch.dtype_rules import SAME
from ember_ml.ops.image.pixels import as_filler
from ember_ml.typing import Tensor, TensorLike

__all__ = ["center_crop", "crop_images", "extract_patches", "pad_images"]


@derived(SAME)
def crop_images(
    images: TensorLike,
    top_cropping: int | None = None,
    left_cropping: int | None = None,
    bottom_cropping: int | None = None,
    right_cropping: int | None = None,
    target_height: int | None = None,
    target_width: int | None = None,
    data_format: str = "channels_last",
) -> Tensor:
    """The images without some rows and columns at their edges.

    Of ``top_cropping``, ``bottom_cropping`` and ``target_height``, two are given and say the third, as are two of
    ``left_cropping``, ``right_cropping`` and ``target_width``.

    >>> from ember_ml import ops
    >>> x = ops.reshape(ops.arange(9), (3, 3, 1))
    >>> ops.to_numpy(ops.crop_images(x, 1, 0, target_height=1, target_width=2))[:, :, 0].tolist()
    [[3, 4]]
    """
    height, width, _ = image_axes(images.shape, data_format)
    key: list[Any] = [slice(None)] * len(images.shape)
    for axis, before, after, target, names in (
        (height, top_cropping, bottom_cropping, target_height, ("top_cropping", "bottom_cropping", "target_height")),
        (width, left_cropping, right_cropping, target_width, ("left_cropping", "right_cropping", "target_width")),
    ):
        length = images.shape[axis]
        before, after, target = _complete(before, after, target, length, names)
        if not target:
            raise ValueError(f"{names[0]}={before} and {names[1]}={after} leave nothing of {length} elements")
        key[axis] = slice(before, length - after)
    return ops.get_item(images, tuple(key))


def _complete(
    before: int | None, after: int | None, target: int | None, total: int, names: Sequence[str]
) -> tuple[int, int, int]:
    """Return three lengths that add up to ``total``, of which one was left out."""
    given = [None if value is None else operator.index(value) for value in (before, after, target)]
    shown = ", ".join(f"{name}={value}" for name, value in zip(names, given, strict=True))
    if given.count(None) != 1:
        raise ValueError(f"two of {', '.join(names)} are needed, and say the third; not {shown}")
    rest = total - sum(value for value in given if value is not None)
    found = [rest if value is None else value for value in given]
    if min(found) < 0:
        raise ValueError(f"{shown} do not fit: {total} elements leave {rest} for the one left out; none is negative")
    return found[0], found[1], found[2]


@derived(SAME)
def center_crop(images: TensorLike, size: int | Sequence[int], data_format: str = "channels_last") -> Tensor:
    """The middle of the images: ``size`` is (height, width), or one number for both, and at most theirs.

    Where the number of rows or columns to cut off is odd, one more goes at the end than at the start.

    >>> from ember_ml import ops
    >>> x = ops.reshape(ops.arange(12), (3, 4, 1))
    >>> ops.to_numpy(ops.center_crop(x, (1, 2)))[:, :, 0].tolist()
    [[5, 6]]
    """
    axes = image_axes(images.shape, data_format)[:2]
    key: list[Any] = [slice(None)] * len(images.shape)
    for axis, length in zip(axes, pair(size, "size"), strict=True):
        start = (images.shape[axis] - length) // 2
        if start < 0:
            raise ValueError(f"size {size!r} is larger than images of shape {tuple(images.shape)}; resize or pad them")
        key[axis] = slice(start, start + length)
    return ops.get_item(images, tuple(key))


@derived(SAME)
def pad_images(
    images: TensorLike,
    top_padding: int | None = None,
    left_padding: int | None = None,
    bottom_padding: int | None = None,
    right_padding: int | None = None,
    target_height: int | None = None,
    target_width: int | None = None,
    fill_value: float = 0.0,
    data_format: str = "channels_last",
) -> Tensor:
    """The images with rows and columns of ``fill_value`` at their edges.

    Of ``top_padding``, ``bottom_padding`` and ``target_height``, two are given and say the third, as are two of
    ``left_padding``, ``right_padding`` and ``target_width``. :func:`pad` has other modes.

    >>> from ember_ml import ops
    >>> x = ops.ones((1, 2, 1))
    >>> ops.to_numpy(ops.pad_images(x, 1, 0, target_height=2, target_width=3))[:, :, 0].tolist()
    [[0.0, 0.0, 0.0], [1.0, 1.0, 0.0]]
    """
    height, width, _ = image_axes(images.shape, data_format)
    widths = [(0, 0)] * len(images.shape)
    for axis, before, after, target, names in (
        (height, top_padding, bottom_padding, target_height, ("top_padding", "bottom_padding", "target_height")),
        (width, left_padding, right_padding, target_width, ("left_padding", "right_padding", "target_width")),
    ):
        length = images.shape[axis]
        if target is None:
            if before is None or after is None or min(before, after) < 0:
                raise ValueError(f"two of {', '.join(names)} are needed, and none is negative")
            widths[axis] = operator.index(before), operator.index(after)
        else:
            before, after, _ = _complete(before, after, length, operator.index(target), names)
            widths[axis] = before, after
    return ops.pad(images, widths, constant_values=as_filler(fill_value, as_dtype(images.dtype)))


@derived(SAME)
def extract_patches(
    images: TensorLike,
    size: int | Sequence[int],
    strides: int | Sequence[int] | None = None,
    dilation_rate: int | Sequence[int] = 1,
    padding: str = "valid",
    data_format: str = "channels_last",
) -> Tensor:
    """The patches of the images, each as one row of channels: (..., rows of patches, columns of patches, numbers).

    ``size`` is (height, width), or one number for both; three numbers cut volumes of (depth, height, width, channels).
    Patches are ``strides`` apart, by default side by side. ``dilation_rate`` is the distance of the elements of a
    patch. ``padding`` is "valid" (only whole patches) or "same" (zeros at the edges, so that a stride of s gives n / s
    patches, rounded up). The numbers of a patch are in the order (height, width, channels) in both data formats.

    >>> from ember_ml import ops
    >>> x = ops.reshape(ops.arange(16), (4, 4, 1))
    >>> patches = ops.extract_patches(x, 2)
    >>> ops.shape(patches), ops.to_numpy(patches)[1, 0].tolist()
    ((2, 2, 4), [8, 9, 12, 13])
    """
    check_choice(data_format, ("channels_last", "channels_first"), "data_format")
    check_choice(padding, ("valid", "same"), "padding")
    count = 2 if hasattr(size, "__index__") else len(size)  # type: ignore[arg-type]
    lengths = per_dimension(size, count, "size")
    steps = lengths if strides is None else per_dimension(strides, count, "strides")
    rates = per_dimension(dilation_rate, count, "dilation_rate")
    if count not in (2, 3) or len(images.shape) - count not in (1, 2):
        raise ValueError(
            f"patches of size {size!r} are cut from a tensor of {count} spatial dimensions and one of channels, with a "
            f"batch axis before at will, and not from the shape {tuple(images.shape)}"
        )
    first = len(images.shape) - count - 1
    x = ops.moveaxis(images, first, -1) if data_format == "channels_first" else images
    for number, (length, step, rate) in enumerate(zip(lengths, steps, rates, strict=True)):
        axis, reach = first + 2 * number, (length - 1) * rate + 1
        total = x.shape[axis]
        if padding == "same":
            patches = -(-total // step)
            missing = max((patches - 1) * step + reach - total, 0)
            widths = [(0, 0)] * len(x.shape)
            widths[axis] = missing // 2, missing - missing // 2
            x = ops.pad(x, widths)
        elif total < reach:
            raise ValueError(f"a patch of {reach} elements does not fit into {total}; use padding='same'")
        else:
            patches = (total - reach) // step + 1
        device = ops.get_device(x)
        starts = ops.arange(0, patches * step, step, device=device)
        inside = ops.arange(0, length * rate, rate, device=device)
        x = ops.take(x, ops.add(ops.expand_dims(starts, -1), inside), axis)
    outer = [first + 2 * number for number in range(count)]
    x = ops.transpose(x, (*range(first), *outer, *(axis + 1 for axis in outer), len(x.shape) - 1))
    x = ops.reshape(x, (*x.shape[: first + count], math.prod(x.shape[first + count :])))
    return ops.moveaxis(x, -1, first) if data_format == "channels_first" else x
