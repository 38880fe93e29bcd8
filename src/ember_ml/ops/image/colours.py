"""Colour spaces of images.

Images are (height, width, channels) or (batch, height, width, channels); ``data_format="channels_first"`` takes and
gives (channels, height, width) instead. Colours are floats, red, green and blue from 0 to 1 unless said otherwise; half
precision is computed in float32.
"""

from __future__ import annotations

from collections.abc import Sequence

from ember_ml import ops
from ember_ml.backend.common.images import image_axes
from ember_ml.core.dtypes import as_dtype
from ember_ml.dispatch.declare import derived
from ember_ml.dispatch.dtype_rules import REAL, REAL_FLOATS
from ember_ml.ops.image.pixels import dtype_of, from_float, to_float
from ember_ml.typing import Tensor, TensorLike

__all__ = ["hsv_to_rgb", "rgb_to_grayscale", "rgb_to_hsv", "rgb_to_yuv", "yuv_to_rgb"]

_GRAY = (0.2989, 0.5870, 0.1140)
_RED, _BLUE = 0.299, 0.114
_GREEN = 1 - _RED - _BLUE
_U, _V = 0.436 / (1 - _BLUE), 0.615 / (1 - _RED)


def _read_planes(images: Tensor, data_format: str) -> tuple[int, list[Tensor]]:
    """Return the axis of the channels and the three planes, each without that axis, in a dtype to compute with."""
    axis = image_axes(images.shape, data_format)[2]
    if images.shape[axis] != 3:
        raise ValueError(f"images have 3 channels along axis {axis}, and not the shape {tuple(images.shape)}")
    x = to_float(images)
    return axis, [ops.get_item(x, (slice(None),) * axis + (number,)) for number in range(3)]


def _mix(planes: Sequence[Tensor], weights: Sequence[float]) -> Tensor:
    red, green, blue = (ops.multiply(plane, weight) for plane, weight in zip(planes, weights, strict=True))
    return ops.add(ops.add(red, green), blue)


@derived(REAL)
def rgb_to_grayscale(images: TensorLike, data_format: str = "channels_last") -> Tensor:
    """The brightness of the images, as one channel: 0.2989 red + 0.587 green + 0.114 blue.

    The values may have any range. Integers are rounded to the nearest, ties to even. Images of one channel stay as
    they are.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.rgb_to_grayscale(ops.array([[[200, 100, 50]]]))).tolist()
    [[[124]]]
    """
    dtype, axis = dtype_of(images), image_axes(images.shape, data_format)[2]
    if images.shape[axis] == 1:
        return images
    axis, planes = _read_planes(images, data_format)
    return from_float(ops.expand_dims(_mix(planes, _GRAY), axis), dtype)


@derived(REAL_FLOATS)
def rgb_to_hsv(images: TensorLike, data_format: str = "channels_last") -> Tensor:
    """Hue, saturation and value of colours, all from 0 to 1: a hue of 0 is red, 1/3 green, 2/3 blue.

    Grays have hue and saturation 0.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.rgb_to_hsv(ops.array([[[0.0, 0.5, 0.25]]]))).tolist()
    [[[0.4166666567325592, 1.0, 0.5]]]
    """
    axis, (red, green, blue) = _read_planes(images, data_format)
    value = ops.maximum(ops.maximum(red, green), blue)
    span = ops.subtract(value, ops.minimum(ops.minimum(red, green), blue))
    is_gray = ops.equal(span, 0.0)
    divisor = ops.where(is_gray, 1.0, span)
    # sixths of the circle, counted from the largest of the three
    from_red = ops.mod(ops.divide(ops.subtract(green, blue), divisor), 6.0)
    from_green = ops.add(ops.divide(ops.subtract(blue, red), divisor), 2.0)
    from_blue = ops.add(ops.divide(ops.subtract(red, green), divisor), 4.0)
    # compilers compute a plane anew for each use, rounded otherwise: none need be equal to their maximum
    is_red = ops.logical_and(ops.greater_equal(red, green), ops.greater_equal(red, blue))
    hue = ops.where(ops.greater_equal(green, blue), from_green, from_blue)
    hue = ops.divide(ops.where(is_red, from_red, hue), 6.0)
    hue = ops.where(is_gray, 0.0, hue)
    saturation = ops.divide(span, ops.where(is_gray, 1.0, value))
    return _join((hue, saturation, value), axis, images)


def _join(planes: Sequence[Tensor], axis: int, like: Tensor) -> Tensor:
    return ops.cast(ops.stack(list(planes), axis), as_dtype(like.dtype))


@derived(REAL_FLOATS)
def hsv_to_rgb(images: TensorLike, data_format: str = "channels_last") -> Tensor:
    """The colours of hue, saturation and value: the inverse of :func:`rgb_to_hsv`. Hues repeat with the period 1.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.hsv_to_rgb(ops.array([[[0.5, 1.0, 0.5]]]))).tolist()
    [[[0.0, 0.5, 0.5]]]
    """
    axis, (hue, saturation, value) = _read_planes(images, data_format)
    turn = ops.multiply(ops.mod(hue, 1.0), 6.0)
    # how much of each colour a hue has: 1 for a third of the circle, then down to 0 over a sixth
    shares = [ops.subtract(ops.abs(ops.subtract(turn, 3.0)), 1.0)]
    shares += [ops.subtract(2.0, ops.abs(ops.subtract(turn, place))) for place in (2.0, 4.0)]
    lost = [ops.multiply(saturation, ops.subtract(1.0, ops.clip(share, 0.0, 1.0))) for share in shares]
    return _join([ops.multiply(value, ops.subtract(1.0, part)) for part in lost], axis, images)


@derived(REAL_FLOATS)
def rgb_to_yuv(images: TensorLike, data_format: str = "channels_last") -> Tensor:
    """Brightness and the two colour differences of analogue television (ITU-R BT.601, full range).

    ``Y = 0.299 R + 0.587 G + 0.114 B``; U is the difference of blue from Y, scaled to 0.436 at most, and V that of
    red, scaled to 0.615.

    >>> from ember_ml import ops
    >>> [round(number, 3) for number in ops.to_numpy(ops.rgb_to_yuv(ops.array([[[1.0, 0.0, 0.0]]]))).ravel().tolist()]
    [0.299, -0.147, 0.615]
    """
    axis, planes = _read_planes(images, data_format)
    brightness = _mix(planes, (_RED, _GREEN, _BLUE))
    u = ops.multiply(ops.subtract(planes[2], brightness), _U)
    v = ops.multiply(ops.subtract(planes[0], brightness), _V)
    return _join((brightness, u, v), axis, images)


@derived(REAL_FLOATS)
def yuv_to_rgb(images: TensorLike, data_format: str = "channels_last") -> Tensor:
    """The colours of brightness and colour differences: the inverse of :func:`rgb_to_yuv`.

    >>> from ember_ml import ops
    >>> x = ops.yuv_to_rgb(ops.array([[[0.5, 0.0, 0.0]]]))
    >>> [round(number, 3) for number in ops.to_numpy(x).ravel().tolist()]
    [0.5, 0.5, 0.5]
    """
    axis, (brightness, u, v) = _read_planes(images, data_format)
    red = ops.add(brightness, ops.multiply(v, 1 / _V))
    blue = ops.add(brightness, ops.multiply(u, 1 / _U))
    rest = _mix((red, brightness, blue), (-_RED / _GREEN, 1 / _GREEN, -_BLUE / _GREEN))
    return _join((red, rest, blue), axis, images)
