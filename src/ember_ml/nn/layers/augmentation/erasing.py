"""Random areas of images and spectrograms that are erased."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ember_ml import ops
from ember_ml.core.dtypes import as_dtype
from ember_ml.nn.layers.augmentation.base import ImageAugmentation, check_format, check_range, draw
from ember_ml.nn.modules.module import Module
from ember_ml.ops.image.pixels import as_filler
from ember_ml.typing import Tensor, TensorLike

__all__ = ["RandomErasing", "SpecAugment", "choose_areas"]


def choose_areas(like: Tensor, sizes: tuple[int, int], heights: Tensor, widths: Tensor) -> Tensor:
    """Return which elements lie in a random area of each image: bools of shape (batch, height, width)."""
    count, masks = ops.shape(like)[0], []
    for length, span in zip(sizes, (heights, widths), strict=True):
        span = ops.minimum(ops.round(span), float(length))
        # one place more than fits, and the whole part of it: each place is equally likely
        start = ops.floor(ops.multiply(draw(like, (count,)), ops.add(ops.subtract(float(length), span), 1.0)))
        start, span = ops.reshape(start, (count, 1)), ops.reshape(span, (count, 1))
        places = ops.arange(float(length), device=ops.get_device(like))
        masks.append(ops.logical_and(ops.greater_equal(places, start), ops.less(places, ops.add(start, span))))
    rows, columns = masks
    return ops.logical_and(ops.expand_dims(rows, 2), ops.expand_dims(columns, 1))


def _filler(value: float, like: Tensor) -> Tensor:
    dtype = as_dtype(ops.dtype(like))
    return ops.cast(as_filler(value, dtype), dtype)


class RandomErasing(ImageAugmentation):
    """In training erases a random area of each image with a probability; otherwise images stay as they are.

    Args:
        probability: That of an area.
        scale: The smallest and the largest share of the image that is erased.
        ratio: The smallest and the largest ratio of width to height of the area.
        fill_value: What stands in the area.
        data_format: "channels_last" or "channels_first".

    >>> from ember_ml import nn, ops
    >>> x = nn.RandomErasing(1.0, scale=(0.25, 0.25), ratio=(1.0, 1.0))(ops.ones((8, 8, 1)))
    >>> int(ops.item(ops.sum(x)))
    48
    """

    probability: float
    scale: tuple[float, float]
    ratio: tuple[float, float]
    fill_value: float
    data_format: str

    def __init__(
        self,
        probability: float = 0.5,
        scale: Sequence[float] = (0.02, 0.33),
        ratio: Sequence[float] = (0.3, 3.3),
        fill_value: float = 0.0,
        data_format: str = "channels_last",
    ) -> None:
        self.scale, self.ratio = check_range(scale, "scale"), check_range(ratio, "ratio")
        if not 0.0 <= probability <= 1.0 or not self.ratio[0] or self.scale[1] > 1:
            raise ValueError(
                f"a probability and shares are from 0 to 1 and ratios above 0, not {probability}, {scale}, {ratio}"
            )
        self.probability, self.fill_value, self.data_format = probability, fill_value, check_format(data_format)

    def change(self, images: Tensor) -> Tensor:
        count, sizes = ops.shape(images)[0], self.sizes(images)
        area = ops.multiply(draw(images, (count,), *self.scale), float(math.prod(sizes)))
        ratio = ops.exp(draw(images, (count,), *map(math.log, self.ratio)))
        heights, widths = ops.sqrt(ops.divide(area, ratio)), ops.sqrt(ops.multiply(area, ratio))
        chosen = ops.less(draw(images, (count, 1, 1)), self.probability)
        erased = ops.logical_and(choose_areas(images, sizes, heights, widths), chosen)
        erased = ops.expand_dims(erased, 3 if self.data_format == "channels_last" else 1)
        return ops.where(erased, _filler(self.fill_value, images), images)


class SpecAugment(Module):
    """In training hides random bands of frequencies and spans of time of spectrograms; otherwise they stay as they are.

    Spectrograms are (frames, bins) or (batch, frames, bins), as :func:`~ember_ml.ops.spectrogram` gives them. The width
    of each band is drawn from 0 up to the largest one (Park and others, 2019; without the warping of time).

    Args:
        frequency_width: The largest number of bins in a band.
        time_width: The largest number of frames in a span.
        frequency_masks: How many bands.
        time_masks: How many spans.
        fill_value: What stands in their place.

    >>> from ember_ml import nn, ops
    >>> x = nn.SpecAugment(frequency_width=4, time_width=8)(ops.ones((2, 100, 40)))
    >>> ops.shape(x), ops.item(ops.sum(x)) >= 2 * 84 * 32
    ((2, 100, 40), True)
    """

    frequency_width: int
    time_width: int
    frequency_masks: int
    time_masks: int
    fill_value: float

    def __init__(
        self,
        frequency_width: int = 27,
        time_width: int = 100,
        frequency_masks: int = 2,
        time_masks: int = 2,
        fill_value: float = 0.0,
    ) -> None:
        if min(frequency_width, time_width, frequency_masks, time_masks) < 0:
            raise ValueError("widths and numbers of masks are not negative")
        self.frequency_width, self.time_width = frequency_width, time_width
        self.frequency_masks, self.time_masks, self.fill_value = frequency_masks, time_masks, fill_value

    def forward(self, x: TensorLike) -> Tensor:
        x = ops.convert_to_tensor(x)
        if not self.training:
            return x
        if ops.ndim(x) == 2:
            return ops.squeeze(self._hide(ops.expand_dims(x, 0)), 0)
        if ops.ndim(x) != 3:
            raise ValueError(f"spectrograms are (frames, bins) or (batch, frames, bins), not {ops.shape(x)}")
        return self._hide(x)

    def _hide(self, x: Tensor) -> Tensor:
        count, frames, bins = ops.shape(x)
        whole = ops.full((count,), float(max(frames, bins)), device=ops.get_device(x))
        filler = _filler(self.fill_value, x)
        for number in range(self.frequency_masks + self.time_masks):
            is_band = number < self.frequency_masks
            most = min(self.frequency_width, bins) if is_band else min(self.time_width, frames)
            width = ops.floor(draw(x, (count,), 0.0, most + 1.0))
            hidden = choose_areas(x, (frames, bins), *((whole, width) if is_band else (width, whole)))
            x = ops.where(hidden, filler, x)
        return x
