"""Pooling: the largest element or the average of windows over one, two or three spatial dimensions.

Tensors are (batch, ..., channels), or with ``data_format="channels_first"`` (batch, channels, ...). Sizes, strides and
padding are those of :func:`ops.max_pool`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ember_ml import ops
from ember_ml.backend.common.convolution import is_channels_first, per_dimension
from ember_ml.nn.modules.module import Module
from ember_ml.typing import Tensor, TensorLike

__all__ = [
    "AdaptiveAvgPool1d",
    "AdaptiveAvgPool2d",
    "AdaptiveAvgPool3d",
    "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d",
    "AvgPool1d",
    "AvgPool2d",
    "AvgPool3d",
    "GlobalAvgPool",
    "GlobalMaxPool",
    "MaxPool1d",
    "MaxPool2d",
    "MaxPool3d",
]


class _Pool(Module):
    """The base class of pooling over windows."""

    dimensions: int

    def _check(self, x: TensorLike) -> None:
        if ops.ndim(x) != self.dimensions + 2:
            raise ValueError(
                f"{type(self).__name__} takes tensors of {self.dimensions + 2} dimensions, a batch with "
                f"{self.dimensions} spatial ones and the channels, not the shape {tuple(ops.shape(x))}"
            )


class _Windows(_Pool):
    pool_size: Any
    strides: Any
    padding: Any
    data_format: str

    def __init__(
        self,
        pool_size: int | Sequence[int],
        strides: int | Sequence[int] | None = None,
        padding: Any = "valid",
        data_format: str = "channels_last",
    ) -> None:
        is_channels_first(data_format, self.dimensions + 2)
        self.pool_size = per_dimension(pool_size, self.dimensions, "pool_size")
        self.strides, self.padding, self.data_format = strides, padding, data_format


class _Max(_Windows):
    def forward(self, x: TensorLike) -> Tensor:
        self._check(x)
        return ops.max_pool(x, self.pool_size, self.strides, self.padding, self.data_format)


class _Average(_Windows):
    def forward(self, x: TensorLike) -> Tensor:
        self._check(x)
        return ops.average_pool(x, self.pool_size, self.strides, self.padding, self.data_format)


class _Adaptive(_Pool):
    output_size: Any
    data_format: str

    def __init__(self, output_size: int | Sequence[int], data_format: str = "channels_last") -> None:
        is_channels_first(data_format, self.dimensions + 2)
        self.output_size = per_dimension(output_size, self.dimensions, "output_size")
        self.data_format = data_format


class _AdaptiveMax(_Adaptive):
    def forward(self, x: TensorLike) -> Tensor:
        self._check(x)
        return ops.adaptive_max_pool(x, self.output_size, self.data_format)


class _AdaptiveAverage(_Adaptive):
    def forward(self, x: TensorLike) -> Tensor:
        self._check(x)
        return ops.adaptive_average_pool(x, self.output_size, self.data_format)


class MaxPool1d(_Max):
    """The largest element of each window, over one spatial dimension; without strides the windows lie side by side.

    Args:
        pool_size: The size of the window: one number, or one per dimension.
        strides: How far the window moves; None: by its own size.
        padding: "valid", "same" or numbers, as in :func:`ops.max_pool`.
        data_format: "channels_last" or "channels_first".

    >>> from ember_ml import nn, ops
    >>> ops.shape(nn.MaxPool1d(2)(ops.ones((2, 10, 3))))
    (2, 5, 3)
    """

    dimensions = 1


class MaxPool2d(_Max):
    """The largest element of each window, over two spatial dimensions; without strides the windows lie side by side.

    >>> from ember_ml import nn, ops
    >>> ops.shape(nn.MaxPool2d(2)(ops.ones((2, 10, 8, 3))))
    (2, 5, 4, 3)
    """

    dimensions = 2


class MaxPool3d(_Max):
    """The largest element of each window, over three spatial dimensions; without strides the windows lie side by side.

    >>> from ember_ml import nn, ops
    >>> ops.shape(nn.MaxPool3d(2)(ops.ones((2, 10, 8, 6, 3))))
    (2, 5, 4, 3, 3)
    """

    dimensions = 3


class AvgPool1d(_Average):
    """The average of each window, over one spatial dimension; padding does not count.

    The arguments are those of :class:`MaxPool1d`.

    >>> from ember_ml import nn, ops
    >>> ops.shape(nn.AvgPool1d(2)(ops.ones((2, 10, 3))))
    (2, 5, 3)
    """

    dimensions = 1


class AvgPool2d(_Average):
    """The average of each window, over two spatial dimensions; padding does not count.

    >>> from ember_ml import nn, ops
    >>> ops.shape(nn.AvgPool2d(2)(ops.ones((2, 10, 8, 3))))
    (2, 5, 4, 3)
    """

    dimensions = 2


class AvgPool3d(_Average):
    """The average of each window, over three spatial dimensions; padding does not count.

    >>> from ember_ml import nn, ops
    >>> ops.shape(nn.AvgPool3d(2)(ops.ones((2, 10, 8, 6, 3))))
    (2, 5, 4, 3, 3)
    """

    dimensions = 3


class AdaptiveMaxPool1d(_AdaptiveMax):
    """The largest element of each of ``output_size`` windows that cover one spatial dimension evenly.

    Args:
        output_size: The number of results: one number, or one per dimension.
        data_format: "channels_last" or "channels_first".

    >>> from ember_ml import nn, ops
    >>> ops.shape(nn.AdaptiveMaxPool1d(4)(ops.ones((2, 10, 3))))
    (2, 4, 3)
    """

    dimensions = 1


class AdaptiveMaxPool2d(_AdaptiveMax):
    """The largest element of each of ``output_size`` windows that cover two spatial dimensions evenly.

    >>> from ember_ml import nn, ops
    >>> ops.shape(nn.AdaptiveMaxPool2d((4, 1))(ops.ones((2, 10, 8, 3))))
    (2, 4, 1, 3)
    """

    dimensions = 2


class AdaptiveMaxPool3d(_AdaptiveMax):
    """The largest element of each of ``output_size`` windows that cover three spatial dimensions evenly.

    >>> from ember_ml import nn, ops
    >>> ops.shape(nn.AdaptiveMaxPool3d(2)(ops.ones((2, 10, 8, 6, 3))))
    (2, 2, 2, 2, 3)
    """

    dimensions = 3


class AdaptiveAvgPool1d(_AdaptiveAverage):
    """The average of each of ``output_size`` windows that cover one spatial dimension evenly.

    >>> from ember_ml import nn, ops
    >>> ops.shape(nn.AdaptiveAvgPool1d(4)(ops.ones((2, 10, 3))))
    (2, 4, 3)
    """

    dimensions = 1


class AdaptiveAvgPool2d(_AdaptiveAverage):
    """The average of each of ``output_size`` windows that cover two spatial dimensions evenly.

    >>> from ember_ml import nn, ops
    >>> ops.shape(nn.AdaptiveAvgPool2d((4, 1))(ops.ones((2, 10, 8, 3))))
    (2, 4, 1, 3)
    """

    dimensions = 2


class AdaptiveAvgPool3d(_AdaptiveAverage):
    """The average of each of ``output_size`` windows that cover three spatial dimensions evenly.

    >>> from ember_ml import nn, ops
    >>> ops.shape(nn.AdaptiveAvgPool3d(2)(ops.ones((2, 10, 8, 6, 3))))
    (2, 2, 2, 2, 3)
    """

    dimensions = 3


class _Global(Module):
    """The base class of pooling over all positions, in any number of dimensions."""

    data_format: str
    keepdims: bool

    def __init__(self, data_format: str = "channels_last", keepdims: bool = False) -> None:
        self._is_first = is_channels_first(data_format, 3)
        self.data_format, self.keepdims = data_format, keepdims

    def _axes(self, x: TensorLike) -> tuple[int, ...]:
        ndim = ops.ndim(x)
        if ndim < 3:
            raise ValueError(f"{type(self).__name__} takes (batch, ..., channels), not the shape {tuple(ops.shape(x))}")
        return tuple(range(2, ndim)) if self._is_first else tuple(range(1, ndim - 1))


class GlobalAvgPool(_Global):
    """The average of each channel over all positions; the result is (batch, channels), unless ``keepdims``.

    Args:
        data_format: "channels_last" or "channels_first".
        keepdims: Whether the spatial dimensions stay, with length 1.

    >>> from ember_ml import nn, ops
    >>> ops.to_numpy(nn.GlobalAvgPool()([[[1.0, 10.0], [3.0, 50.0]]])).tolist()
    [[2.0, 30.0]]
    """

    def forward(self, x: TensorLike) -> Tensor:
        return ops.mean(x, self._axes(x), self.keepdims)


class GlobalMaxPool(_Global):
    """The largest element of each channel over all positions; the result is (batch, channels), unless ``keepdims``.

    >>> from ember_ml import nn, ops
    >>> ops.to_numpy(nn.GlobalMaxPool()([[[1.0, 10.0], [3.0, 50.0]]])).tolist()
    [[3.0, 50.0]]
    """

    def forward(self, x: TensorLike) -> Tensor:
        return ops.max(x, self._axes(x), self.keepdims)
