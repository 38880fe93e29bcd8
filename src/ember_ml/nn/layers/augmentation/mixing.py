"""Mixtures of two samples and of their targets."""

from __future__ import annotations

import math

from ember_ml import ops
from ember_ml.core.dtypes import as_dtype
from ember_ml.nn.layers.augmentation.base import check_format, draw
from ember_ml.nn.layers.augmentation.erasing import choose_areas
from ember_ml.nn.modules.module import Module
from ember_ml.typing import Tensor, TensorLike

__all__ = ["CutMix", "MixUp"]


def _draw_share(alpha: float, like: Tensor) -> Tensor:
    """Return the share of the first sample for the whole batch, from the beta distribution."""
    if alpha == 1.0:  # where it is uniform, and can be drawn in a compiled function
        return draw(like, ())
    return ops.random_beta((), alpha, alpha, device=ops.get_device(like))


def _mix(x: Tensor, other: Tensor, share: Tensor) -> Tensor:
    if as_dtype(ops.dtype(x)).kind in ("bool", "int", "uint"):  # a share of an integer is 0 or 1
        x, other = ops.cast(x, "float32"), ops.cast(other, "float32")
    share = ops.cast(share, ops.dtype(x))
    return ops.add(ops.multiply(x, share), ops.multiply(other, ops.subtract(1.0, share)))


def _check_targets(x: Tensor, y: Tensor) -> None:
    if not ops.ndim(x) or ops.shape(x)[:1] != ops.shape(y)[:1]:
        raise ValueError(
            f"samples of shape {ops.shape(x)} have one target each, and not targets of shape {ops.shape(y)}"
        )


class MixUp(Module):
    """In training mixes each sample of a batch, and its target, with another one of the batch; otherwise nothing.

    ``layer(x, y)`` returns both: ``share * x + (1 - share) * x[order]`` and the same of ``y``, with a random order
    and a share from the beta distribution (Zhang and others, 2018). The results are floats, integers become float32;
    targets are one-hot, or numbers.

    Args:
        alpha: Both parameters of the beta distribution. 1 makes every share equally likely; small ones mix little.
            Any but 1 is drawn on the host, which a compiled function cannot do.

    >>> from ember_ml import nn, ops
    >>> x, y = nn.MixUp(1.0)(ops.ones((4, 3)), ops.one_hot([0, 1, 2, 0], 3))
    >>> ops.to_numpy(ops.round(ops.sum(y, axis=1), 4)).tolist()
    [1.0, 1.0, 1.0, 1.0]
    """

    alpha: float

    def __init__(self, alpha: float = 0.2) -> None:
        if not alpha > 0:
            raise ValueError(f"alpha is positive, not {alpha!r}")
        self.alpha = alpha

    def forward(self, x: TensorLike, y: TensorLike) -> tuple[Tensor, Tensor]:
        x, y = ops.convert_to_tensor(x), ops.convert_to_tensor(y)
        _check_targets(x, y)
        if not self.training:
            return x, y
        share, order = _draw_share(self.alpha, x), ops.random_permutation(ops.shape(x)[0], device=ops.get_device(x))
        return _mix(x, ops.take(x, order, 0), share), _mix(y, ops.take(y, order, 0), share)


class CutMix(Module):
    """In training replaces an area of each image by that of another one of the batch; otherwise nothing.

    ``layer(images, y)`` returns both; the targets, one-hot or numbers, are mixed by the share of each image that was
    kept (Yun and others, 2019).

    Args:
        alpha: Both parameters of the beta distribution from which the share that is kept comes. Any but 1 is drawn on
            the host, which a compiled function cannot do.
        data_format: "channels_last" or "channels_first".

    >>> from ember_ml import nn, ops
    >>> x = ops.asarray([[[[0.0]], [[0.0]]], [[[1.0]], [[1.0]]]])
    >>> images, y = nn.CutMix()(x, ops.one_hot([0, 1], 2))
    >>> bool(ops.item(ops.allclose(ops.mean(images, axis=(1, 2, 3)), y[:, 1])))
    True
    """

    alpha: float
    data_format: str

    def __init__(self, alpha: float = 1.0, data_format: str = "channels_last") -> None:
        if not alpha > 0:
            raise ValueError(f"alpha is positive, not {alpha!r}")
        self.alpha, self.data_format = alpha, check_format(data_format)

    def forward(self, images: TensorLike, y: TensorLike) -> tuple[Tensor, Tensor]:
        x, y = ops.convert_to_tensor(images), ops.convert_to_tensor(y)
        _check_targets(x, y)
        if not self.training:
            return x, y
        shape = ops.shape(x)
        if len(shape) != 4:
            raise ValueError(f"CutMix takes a batch of images, not the shape {shape}")
        count, sizes = shape[0], (shape[1:3] if self.data_format == "channels_last" else shape[2:])
        order = ops.random_permutation(count, device=ops.get_device(x))
        side = ops.sqrt(ops.subtract(1.0, ops.cast(_draw_share(self.alpha, x), "float32")))
        heights, widths = (ops.multiply(ops.broadcast_to(side, (count,)), float(size)) for size in sizes)
        area = choose_areas(x, (sizes[0], sizes[1]), heights, widths)
        cut = ops.expand_dims(area, 3 if self.data_format == "channels_last" else 1)
        taken = ops.sum(ops.cast(area, "float32"), axis=(1, 2))
        kept = ops.subtract(1.0, ops.divide(taken, float(math.prod(sizes))))
        kept = ops.reshape(kept, (count, *(1,) * (ops.ndim(y) - 1)))
        return ops.where(cut, ops.take(x, order, 0), x), _mix(y, ops.take(y, order, 0), kept)
