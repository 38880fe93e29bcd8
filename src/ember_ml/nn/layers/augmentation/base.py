"""The base class of layers that change images at random."""

from __future__ import annotations

from typing import Any

from ember_ml import ops
from ember_ml.backend.common.images import check_choice
from ember_ml.nn.modules.module import Module
from ember_ml.typing import Tensor, TensorLike

__all__ = ["ImageAugmentation", "check_format", "check_range", "draw"]


class ImageAugmentation(Module):
    """A layer that changes each image of a batch, or a single one, at random in training.

    A subclass defines ``change(images)``, which gets a batch, and, where the result has another size, ``settle``: what
    it does otherwise.
    """

    data_format: str

    def forward(self, images: TensorLike) -> Tensor:
        x = ops.convert_to_tensor(images)
        if not self.training:
            return self.settle(x)
        if ops.ndim(x) == 3:
            return ops.squeeze(self.change(ops.expand_dims(x, 0)), 0)
        if ops.ndim(x) != 4:
            raise ValueError(f"{type(self).__name__} takes an image or a batch of them, not the shape {ops.shape(x)}")
        return self.change(x)

    def change(self, images: Tensor) -> Tensor:
        """Return a batch of images, each changed by random numbers of its own."""
        raise NotImplementedError(f"{type(self).__name__} defines no change of images")

    def settle(self, images: Tensor) -> Tensor:
        """Return what the layer gives outside of training: by default the images as they are."""
        return images

    def sizes(self, images: Tensor) -> tuple[int, int]:
        """Return the height and the width of a batch of images."""
        shape = ops.shape(images)
        return (shape[1], shape[2]) if self.data_format == "channels_last" else (shape[2], shape[3])


def draw(like: Tensor, shape: tuple[int, ...], low: float = 0.0, high: float = 1.0) -> Tensor:
    """Return random numbers from the stream of the process, on the device of ``like``."""
    # torch 2.13: its compiler refuses the second constant of a function, which each draw between bounds would have
    numbers = ops.random_uniform(shape, device=ops.get_device(like))
    return numbers if (low, high) == (0.0, 1.0) else ops.add(ops.multiply(numbers, high - low), low)


def check_format(data_format: str) -> str:
    """Return the order of the axes of images; ``ValueError`` where it is none."""
    return check_choice(data_format, ("channels_last", "channels_first"), "data_format")


def check_range(value: Any, name: str, least: float = 0.0) -> tuple[float, float]:
    """Return a pair of numbers (low, high) in order; ``ValueError`` otherwise."""
    low, high = (float(number) for number in value)
    if not least <= low <= high:
        raise ValueError(f"{name} is a pair (low, high) of numbers from {least} on, in order, not {value!r}")
    return low, high
