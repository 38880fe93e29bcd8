"""Layers that do not compute: they reshape, mask, or return their input."""

from __future__ import annotations

import math

from ember_ml import ops
from ember_ml.core.dtypes import as_dtype, bool_
from ember_ml.nn.modules.module import Module
from ember_ml.typing import Tensor, TensorLike

__all__ = ["Flatten", "Identity", "Mask", "Reshape"]


class Identity(Module):
    """What it gets, as a tensor.

    >>> from ember_ml import nn, ops
    >>> ops.to_numpy(nn.Identity()([1.0, 2.0])).tolist()
    [1.0, 2.0]
    """

    def forward(self, x: TensorLike) -> Tensor:
        return ops.convert_to_tensor(x)


class Flatten(Module):
    """All dimensions from ``start`` on as one; the first, the batch, stays.

    >>> from ember_ml import nn, ops
    >>> ops.shape(nn.Flatten()(ops.ones((8, 4, 4, 3))))
    (8, 48)
    """

    def __init__(self, start: int = 1) -> None:
        if start < 0:
            raise ValueError(f"Flatten starts at a dimension counted from the front, not at {start}")
        self.start = start

    def forward(self, x: TensorLike) -> Tensor:
        shape = tuple(ops.shape(x))
        if len(shape) < self.start:
            raise ValueError(f"Flatten keeps {self.start} dimensions, and the shape {shape} has {len(shape)}")
        return ops.reshape(x, (*shape[: self.start], math.prod(shape[self.start :])))


class Reshape(Module):
    """The numbers of each sample in another shape; one length may be -1: what remains. The batch stays.

    >>> from ember_ml import nn, ops
    >>> ops.shape(nn.Reshape(4, -1)(ops.ones((8, 48))))
    (8, 4, 12)
    """

    def __init__(self, *shape: int) -> None:
        self.shape = shape

    def forward(self, x: TensorLike) -> Tensor:
        return ops.reshape(x, (ops.shape(x)[0], *self.shape))


class Mask(Module):
    """``x`` where the mask is true and 0 elsewhere, or ``x`` times a mask of numbers; without a mask, ``x``.

    The dimensions of the mask are the first ones of ``x``: one of shape (batch, length) serves all channels.

    >>> from ember_ml import nn, ops
    >>> x = [[[1.0, 2.0], [3.0, 4.0]]]
    >>> ops.to_numpy(nn.Mask()(x, mask=[[True, False]])).tolist()
    [[[1.0, 2.0], [0.0, 0.0]]]
    """

    def forward(self, x: TensorLike, mask: TensorLike | None = None) -> Tensor:
        if mask is None:
            return ops.convert_to_tensor(x)
        missing = ops.ndim(x) - ops.ndim(mask)
        spread = ops.reshape(mask, (*ops.shape(mask), *(1,) * missing)) if missing > 0 else ops.convert_to_tensor(mask)
        return ops.where(spread, x, 0.0) if as_dtype(spread.dtype) is bool_ else ops.multiply(x, spread)
