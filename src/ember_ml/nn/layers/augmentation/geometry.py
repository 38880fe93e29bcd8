"""Random crops, mirror images and turns of images."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ember_ml import ops
from ember_ml.backend.common.images import FILL_MODES, check_choice, pair
from ember_ml.nn.layers.augmentation.base import ImageAugmentation, check_format, check_range, draw
from ember_ml.typing import Tensor

__all__ = ["RandomCrop", "RandomFlip", "RandomResizedCrop", "RandomRotation"]


class RandomCrop(ImageAugmentation):
    """In training a part of each image at a random place; otherwise its middle.

    Args:
        size: (height, width) of the part, or one number for both.
        padding: How many rows and columns of ``fill_value`` are added at each side before.
        fill_value: What is outside of an image.
        data_format: "channels_last" or "channels_first".

    >>> from ember_ml import nn, ops
    >>> ops.shape(nn.RandomCrop(24, padding=2)(ops.ones((8, 28, 28, 3))))
    (8, 24, 24, 3)
    """

    size: tuple[int, int]
    padding: int
    fill_value: float
    data_format: str

    def __init__(
        self,
        size: int | Sequence[int],
        padding: int = 0,
        fill_value: float = 0.0,
        data_format: str = "channels_last",
    ) -> None:
        self.size, self.padding, self.fill_value, self.data_format = (
            pair(size, "size"),
            padding,
            fill_value,
            check_format(data_format),
        )
        if padding < 0:
            raise ValueError(f"the padding of RandomCrop is not negative, as {padding} is")

    def _pad(self, images: Tensor) -> Tensor:
        if not self.padding:
            return images
        sides = (self.padding,) * 4
        return ops.pad_images(images, *sides, fill_value=self.fill_value, data_format=self.data_format)

    def change(self, images: Tensor) -> Tensor:
        x = self._pad(images)
        count, first = ops.shape(x)[0], 1 if self.data_format == "channels_last" else 2
        for axis, length, total in zip((first, first + 1), self.size, self.sizes(x), strict=True):
            if length > total:
                raise ValueError(f"RandomCrop of size {self.size} is larger than images of shape {ops.shape(images)}")
            start = ops.random_integers((count, 1), 0, total - length + 1, device=ops.get_device(x))
            places = ops.add(start, ops.arange(length, device=ops.get_device(x)))
            x = ops.take_along_axis(
                x, ops.reshape(places, (count, *(length if a == axis else 1 for a in (1, 2, 3)))), axis
            )
        return x

    def settle(self, images: Tensor) -> Tensor:
        return ops.center_crop(self._pad(images), self.size, self.data_format)


class RandomFlip(ImageAugmentation):
    """In training mirrors each image with a probability; otherwise images stay as they are.

    Args:
        mode: "horizontal" (left and right change places), "vertical", or "both", each on its own.
        probability: That of a mirror image.
        data_format: "channels_last" or "channels_first".

    >>> from ember_ml import nn, ops
    >>> x = ops.reshape(ops.array([1.0, 2.0]), (1, 2, 1))
    >>> ops.to_numpy(nn.RandomFlip(probability=1.0)(x)).ravel().tolist()
    [2.0, 1.0]
    """

    mode: str
    probability: float
    data_format: str

    def __init__(self, mode: str = "horizontal", probability: float = 0.5, data_format: str = "channels_last") -> None:
        self.mode = check_choice(mode, ("horizontal", "vertical", "both"), "the mode of RandomFlip")
        self.probability, self.data_format = _check_probability(probability), check_format(data_format)

    def change(self, images: Tensor) -> Tensor:
        first = 1 if self.data_format == "channels_last" else 2
        axes = {"vertical": (first,), "horizontal": (first + 1,), "both": (first, first + 1)}[self.mode]
        for axis in axes:
            chosen = ops.less(draw(images, (ops.shape(images)[0], 1, 1, 1)), self.probability)
            images = ops.where(chosen, ops.flip(images, axis), images)
        return images


def _check_probability(value: float) -> float:
    if not 0.0 <= value <= 1.0:
        raise ValueError(f"a probability is a number from 0 to 1, not {value!r}")
    return value


class RandomRotation(ImageAugmentation):
    """In training turns each image around its centre by a random angle; otherwise images stay as they are.

    Args:
        degrees: The largest angle, in both directions.
        interpolation: "bilinear" or "nearest".
        fill_mode: What is outside of an image, as in :func:`~ember_ml.ops.affine_transform`.
        fill_value: That of the fill mode "constant".
        data_format: "channels_last" or "channels_first".

    >>> from ember_ml import nn, ops
    >>> ops.shape(nn.RandomRotation(10.0)(ops.ones((8, 28, 28, 3))))
    (8, 28, 28, 3)
    """

    degrees: float
    interpolation: str
    fill_mode: str
    fill_value: float
    data_format: str

    def __init__(
        self,
        degrees: float,
        interpolation: str = "bilinear",
        fill_mode: str = "constant",
        fill_value: float = 0.0,
        data_format: str = "channels_last",
    ) -> None:
        if not degrees >= 0:
            raise ValueError(f"degrees are not negative, as {degrees!r} is")
        self.degrees, self.fill_value, self.data_format = degrees, fill_value, check_format(data_format)
        self.interpolation = check_choice(interpolation, ("bilinear", "nearest"), "the interpolation of RandomRotation")
        self.fill_mode = check_choice(fill_mode, FILL_MODES, "fill_mode")

    def change(self, images: Tensor) -> Tensor:
        angle = draw(images, (ops.shape(images)[0],), -float(self.degrees), float(self.degrees))
        return ops.rotate(images, angle, self.interpolation, self.fill_mode, self.fill_value, self.data_format)


class RandomResizedCrop(ImageAugmentation):
    """In training a random part of each image, of random area and aspect ratio, resized to ``size``.

    The part need not begin at a whole element. Otherwise the largest part of the images in the middle that has the
    aspect ratio of ``size``, resized.

    Args:
        size: (height, width) of the result, or one number for both.
        scale: The smallest and the largest area of the part, as shares of the image's.
        ratio: The smallest and the largest ratio of width to height of the part.
        interpolation: "bilinear", "bicubic", "lanczos3" or "lanczos5".
        antialias: Whether all elements take part where images become smaller.
        data_format: "channels_last" or "channels_first".

    >>> from ember_ml import nn, ops
    >>> ops.shape(nn.RandomResizedCrop(16)(ops.ones((8, 28, 32, 3))))
    (8, 16, 16, 3)
    """

    size: tuple[int, int]
    scale: tuple[float, float]
    ratio: tuple[float, float]
    interpolation: str
    antialias: bool
    data_format: str

    def __init__(
        self,
        size: int | Sequence[int],
        scale: Sequence[float] = (0.08, 1.0),
        ratio: Sequence[float] = (0.75, 4 / 3),
        interpolation: str = "bilinear",
        antialias: bool = True,
        data_format: str = "channels_last",
    ) -> None:
        self.size, self.scale, self.ratio = pair(size, "size"), check_range(scale, "scale"), check_range(ratio, "ratio")
        if not self.ratio[0] or not 0 < self.scale[0] <= self.scale[1] <= 1:
            raise ValueError(f"a part has an area above 0 and up to 1 and a ratio above 0, not {scale!r} and {ratio!r}")
        kinds = ("bilinear", "bicubic", "lanczos3", "lanczos5")
        self.interpolation = check_choice(interpolation, kinds, "the interpolation of RandomResizedCrop")
        self.antialias, self.data_format = antialias, check_format(data_format)

    def change(self, images: Tensor) -> Tensor:
        count, (height, width) = ops.shape(images)[0], self.sizes(images)
        area = ops.multiply(draw(images, (count,), *self.scale), float(height * width))
        ratio = ops.exp(draw(images, (count,), *map(math.log, self.ratio)))
        sizes = ops.stack([ops.sqrt(ops.divide(area, ratio)), ops.sqrt(ops.multiply(area, ratio))], -1)
        whole = ops.asarray([float(height), float(width)], device=ops.get_device(images))
        sizes = ops.minimum(sizes, whole)
        starts = ops.multiply(draw(images, (count, 2)), ops.subtract(whole, sizes))
        factors = ops.divide(ops.asarray([float(n) for n in self.size], device=ops.get_device(images)), sizes)
        first = 1 if self.data_format == "channels_last" else 2
        shape = list(ops.shape(images))
        shape[first : first + 2] = self.size
        moves = ops.negative(ops.multiply(starts, factors))
        axes = first, first + 1
        return ops.scale_and_translate(images, shape, factors, moves, axes, self.interpolation, self.antialias)

    def settle(self, images: Tensor) -> Tensor:
        return ops.resize(
            images,
            self.size,
            self.interpolation,
            self.antialias,
            crop_to_aspect_ratio=True,
            data_format=self.data_format,
        )
