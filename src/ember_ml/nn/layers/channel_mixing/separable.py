"""Convolutions of each channel by itself, alone and followed by a mixture of the channels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ember_ml import ops
from ember_ml.nn import initializers
from ember_ml.nn.layers.base import Layer
from ember_ml.nn.layers.channel_mixing.convolution import Conv1d, Conv2d, Conv3d, Kernel
from ember_ml.typing import DeviceLike, DTypeLike, Tensor, TensorLike

__all__ = [
    "DepthwiseConv1d",
    "DepthwiseConv2d",
    "DepthwiseConv3d",
    "SeparableConv1d",
    "SeparableConv2d",
    "SeparableConv3d",
]


class _Depthwise(Kernel):
    inputs: int | None
    multiplier: int

    def __init__(
        self,
        inputs: int | None = None,
        kernel_size: int | Sequence[int] | None = None,
        multiplier: int = 1,
        strides: int | Sequence[int] = 1,
        padding: Any = "valid",
        dilation_rate: int | Sequence[int] = 1,
        bias: bool = True,
        data_format: str = "channels_last",
        initializer: str | initializers.Initializer = "torch_uniform",
        dtype: DTypeLike = "float32",
        device: DeviceLike | None = None,
    ) -> None:
        self.multiplier = multiplier
        self._set(inputs, kernel_size, strides, padding, dilation_rate, bias, data_format, initializer, dtype, device)

    def _make(self, inputs: int) -> None:
        self.inputs, outputs = inputs, inputs * self.multiplier
        self._make_parameters((outputs, 1, *self.kernel_size), outputs)

    def forward(self, x: TensorLike) -> Tensor:
        kernel = ops.transpose(self.weight, self._order)
        return self._with_bias(ops.conv(x, kernel, self.strides, self.padding, self.data_format, self.dilation_rate))


class DepthwiseConv1d(_Depthwise):
    """Each channel convolved by itself over one spatial dimension: ``DepthwiseConv1d(inputs, kernel_size)``.

    ``DepthwiseConv1d(kernel_size=3)`` learns the number of channels from the first call. Each has ``multiplier``
    windows; the weight has shape ``(inputs * multiplier, 1, kernel_size)``, as that of PyTorch's grouped convolution.

    Args:
        inputs: The number of channels of the input; left out, that of the first input.
        kernel_size: The size of the window: one number, or one per dimension.
        multiplier: The number of windows, and of results, for each channel.
        strides: How far the window moves from one result to the next.
        padding: "valid", "same", "causal" (one dimension only) or numbers, as in :func:`ops.conv`.
        dilation_rate: The distance of neighbouring elements of the window.
        bias: Whether a bias is added.
        data_format: "channels_last" or "channels_first".
        initializer: How the weight starts: a name or function of ``nn.initializers``.
        dtype: The dtype of the parameters.
        device: Where they are made; None: on the default device.

    >>> from ember_ml import nn, ops
    >>> ops.shape(nn.DepthwiseConv1d(kernel_size=3, multiplier=2)(ops.ones((2, 10, 5))))
    (2, 8, 10)
    """

    dimensions = 1


class DepthwiseConv2d(_Depthwise):
    """Each channel convolved by itself over two spatial dimensions: see :class:`DepthwiseConv1d`.

    >>> from ember_ml import nn, ops
    >>> ops.shape(nn.DepthwiseConv2d(3, 3, padding="same")(ops.ones((8, 32, 32, 3))))
    (8, 32, 32, 3)
    """

    dimensions = 2


class DepthwiseConv3d(_Depthwise):
    """Each channel convolved by itself over three spatial dimensions: see :class:`DepthwiseConv1d`.

    >>> from ember_ml import nn, ops
    >>> ops.shape(nn.DepthwiseConv3d(kernel_size=2)(ops.ones((2, 5, 5, 5, 3))))
    (2, 4, 4, 4, 3)
    """

    dimensions = 3


class _Separable(Layer):
    depthwise: Any
    pointwise: Any

    depthwise_kind: type[_Depthwise]
    pointwise_kind: type[Any]

    def __init__(
        self,
        inputs: int | None,
        outputs: int | None = None,
        kernel_size: int | Sequence[int] | None = None,
        multiplier: int = 1,
        strides: int | Sequence[int] = 1,
        padding: Any = "valid",
        dilation_rate: int | Sequence[int] = 1,
        bias: bool = True,
        data_format: str = "channels_last",
        initializer: str | initializers.Initializer = "torch_uniform",
        dtype: DTypeLike = "float32",
        device: DeviceLike | None = None,
    ) -> None:
        inputs, outputs = (None, inputs) if outputs is None else (inputs, outputs)
        self.depthwise = self.depthwise_kind(
            inputs,
            kernel_size,
            multiplier,
            strides,
            padding,
            dilation_rate,
            bias=False,
            data_format=data_format,
            initializer=initializer,
            dtype=dtype,
            device=device,
        )
        self.pointwise = self.pointwise_kind(
            None if inputs is None else inputs * multiplier,
            outputs,
            1,
            bias=bias,
            data_format=data_format,
            initializer=initializer,
            dtype=dtype,
            device=device,
        )

    def forward(self, x: TensorLike) -> Tensor:
        return self.pointwise(self.depthwise(x))


class SeparableConv1d(_Separable):
    """A :class:`DepthwiseConv1d`, then a convolution of one element that mixes the channels.

    ``SeparableConv1d(inputs, outputs, kernel_size)``, or ``SeparableConv1d(outputs, kernel_size=3)``.

    The arguments are those of :class:`Conv1d`, and ``multiplier`` that of :class:`DepthwiseConv1d`.

    >>> from ember_ml import nn, ops
    >>> ops.shape(nn.SeparableConv1d(4, kernel_size=3)(ops.ones((2, 10, 5))))
    (2, 8, 4)
    """

    depthwise_kind: type[_Depthwise] = DepthwiseConv1d
    pointwise_kind: type[Any] = Conv1d


class SeparableConv2d(_Separable):
    """A :class:`DepthwiseConv2d`, then a convolution of one element that mixes the channels.

    ``SeparableConv2d(inputs, outputs, kernel_size)``, or ``SeparableConv2d(outputs, kernel_size=3)``.

    >>> from ember_ml import nn, ops
    >>> ops.shape(nn.SeparableConv2d(3, 16, 3, padding="same")(ops.ones((8, 32, 32, 3))))
    (8, 32, 32, 16)
    """

    depthwise_kind: type[_Depthwise] = DepthwiseConv2d
    pointwise_kind: type[Any] = Conv2d


class SeparableConv3d(_Separable):
    """A :class:`DepthwiseConv3d`, then a convolution of one element that mixes the channels.

    ``SeparableConv3d(inputs, outputs, kernel_size)``, or ``SeparableConv3d(outputs, kernel_size=3)``.

    >>> from ember_ml import nn, ops
    >>> ops.shape(nn.SeparableConv3d(4, kernel_size=2)(ops.ones((2, 5, 5, 5, 3))))
    (2, 4, 4, 4, 4)
    """

    depthwise_kind: type[_Depthwise] = DepthwiseConv3d
    pointwise_kind: type[Any] = Conv3d
