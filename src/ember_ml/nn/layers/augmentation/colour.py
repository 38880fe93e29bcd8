"""Random changes of colours."""

from __future__ import annotations

from ember_ml import ops
from ember_ml.core.dtypes import as_dtype
from ember_ml.nn.layers.augmentation.base import ImageAugmentation, check_format, draw
from ember_ml.typing import Tensor

__all__ = ["ColorJitter"]


class ColorJitter(ImageAugmentation):
    """In training changes brightness, contrast, saturation and hue of each image at random, in this order.

    Brightness is a factor of all values; contrast blends the image with the mean of its gray, saturation with its
    gray; hue is turned. Values are cut off at 0 and at the largest value after each step. Otherwise images stay as they
    are.

    Args:
        brightness: The factor is drawn from ``1 - brightness``, but not below 0, to ``1 + brightness``.
        contrast: Likewise the factor of the distances from the mean.
        saturation: Likewise the factor of the distances from gray; it needs 3 channels.
        hue: The largest turn of the hue in both directions, as a share of the circle, 0.5 at most; it needs 3 channels.
        max_value: The largest value of a channel; by default 1 for floats and 255 for integers.
        data_format: "channels_last" or "channels_first".

    >>> from ember_ml import nn, ops
    >>> x = nn.ColorJitter(brightness=0.2, hue=0.1)(ops.full((2, 4, 4, 3), 0.5))
    >>> ops.shape(x), ops.item(ops.max(x)) <= 1.0
    ((2, 4, 4, 3), True)
    """

    brightness: float
    contrast: float
    saturation: float
    hue: float
    max_value: float | None
    data_format: str

    def __init__(
        self,
        brightness: float = 0.0,
        contrast: float = 0.0,
        saturation: float = 0.0,
        hue: float = 0.0,
        max_value: float | None = None,
        data_format: str = "channels_last",
    ) -> None:
        if min(brightness, contrast, saturation, hue) < 0 or hue > 0.5:
            raise ValueError("brightness, contrast and saturation are not negative, and hue is from 0 to 0.5")
        self.brightness, self.contrast, self.saturation, self.hue = brightness, contrast, saturation, hue
        self.max_value, self.data_format = max_value, check_format(data_format)

    def change(self, images: Tensor) -> Tensor:
        dtype = as_dtype(ops.dtype(images))
        is_whole = dtype.kind != "float"
        most = self.max_value if self.max_value is not None else 255.0 if is_whole else 1.0
        x = ops.divide(ops.cast(images, "float64" if dtype.name == "float64" else "float32"), most)
        if self.brightness:
            x = ops.clip(ops.multiply(x, self._factor(x, self.brightness)), 0.0, 1.0)
        if self.contrast:
            mean = ops.mean(self._gray(x), axis=(1, 2, 3), keepdims=True)
            x = self._blend(x, mean, self._factor(x, self.contrast))
        if self.saturation:
            x = self._blend(x, self._gray(x), self._factor(x, self.saturation))
        if self.hue:
            axis = 3 if self.data_format == "channels_last" else 1
            hue, saturation, value = ops.split(ops.rgb_to_hsv(x, self.data_format), 3, axis)
            turn = ops.cast(draw(x, (ops.shape(x)[0], 1, 1, 1), -self.hue, self.hue), x.dtype)
            x = ops.hsv_to_rgb(ops.concatenate([ops.add(hue, turn), saturation, value], axis), self.data_format)
        x = ops.multiply(x, most)
        return ops.saturate_cast(ops.round(x), dtype) if is_whole else ops.cast(x, dtype)

    def _factor(self, x: Tensor, spread: float) -> Tensor:
        return ops.cast(draw(x, (ops.shape(x)[0], 1, 1, 1), max(0.0, 1.0 - spread), 1.0 + spread), x.dtype)

    def _gray(self, x: Tensor) -> Tensor:
        return ops.rgb_to_grayscale(x, self.data_format)

    @staticmethod
    def _blend(x: Tensor, other: Tensor, factor: Tensor) -> Tensor:
        return ops.clip(ops.add(other, ops.multiply(ops.subtract(x, other), factor)), 0.0, 1.0)
