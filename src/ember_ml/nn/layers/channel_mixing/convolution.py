"""Convolutions over one, two or three spatial dimensions.

Tensors are (batch, ..., channels), or with ``data_format="channels_first"`` (batch, channels, ...). The weights are
those of PyTorch: ``(outputs, inputs / groups, window...)``, and ``(inputs, outputs, window...)`` of what is transposed.
Strides, padding and dilation are those of :func:`ops.conv`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ember_ml import ops
from ember_ml.backend.common.convolution import is_channels_first, per_dimension
from ember_ml.nn import initializers
from ember_ml.nn.layers.base import Layer
from ember_ml.typing import DeviceLike, DTypeLike, Tensor, TensorLike

__all__ = [
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
    "Kernel",
]


class Kernel(Layer):
    """The base class of layers with a sliding window: sizes, one of which may be left out, weight and bias."""

    inputs: int | None

    bias: Any
    data_format: str
    dilation_rate: Any
    has_bias: bool
    kernel_size: Any
    padding: Any
    strides: Any

    dimensions: int
    """The number of spatial dimensions."""

    def _set(
        self,
        inputs: int | None,
        kernel_size: int | Sequence[int] | None,
        strides: int | Sequence[int],
        padding: Any,
        dilation_rate: int | Sequence[int],
        bias: bool,
        data_format: str,
        initializer: str | initializers.Initializer,
        dtype: DTypeLike,
        device: DeviceLike | None,
    ) -> None:
        if kernel_size is None:
            raise TypeError(f"{type(self).__name__} needs a kernel_size, as in kernel_size=3")
        self.inputs = inputs
        self.kernel_size = per_dimension(kernel_size, self.dimensions, "kernel_size")
        self.strides, self.padding, self.dilation_rate, self.data_format = strides, padding, dilation_rate, data_format
        self._is_first = is_channels_first(data_format, self.dimensions + 2)
        self._order = (*range(2, self.dimensions + 2), 1, 0)  # from the weight to the kernel of the op
        self.has_bias, self._initializer, self._dtype, self._device = bias, initializer, dtype, device
        if inputs is None:
            self.is_built = False
        else:
            self._make(inputs)

    def build(self, shape: tuple[int, ...]) -> None:
        if len(shape) != self.dimensions + 2:
            raise ValueError(
                f"{type(self).__name__} takes tensors of {self.dimensions + 2} dimensions, a batch with "
                f"{self.dimensions} spatial ones and the channels, not the shape {shape}"
            )
        self._make(shape[1 if self._is_first else -1])

    def _make(self, inputs: int) -> None:
        """Make the parameters for ``inputs`` input channels."""
        raise NotImplementedError

    def _make_parameters(self, shape: tuple[int, ...], outputs: int) -> None:
        self.add_parameter("weight", shape, self._initializer, self._dtype)
        if self.has_bias:
            limit = max(math.prod(shape[1:]), 1) ** -0.5
            self.add_parameter("bias", (outputs,), initializers.uniform(-limit, limit), self._dtype)
        else:
            self.bias = None

    def _with_bias(self, x: Tensor) -> Tensor:
        bias = self.bias
        if bias is None:
            return x
        return ops.add(x, ops.reshape(bias, (-1, *(1,) * self.dimensions)) if self._is_first else bias)


class _Convolution(Kernel):
    inputs: int | None
    outputs: int | None
    groups: int

    def __init__(
        self,
        inputs: int | None,
        outputs: int | None = None,
        kernel_size: int | Sequence[int] | None = None,
        strides: int | Sequence[int] = 1,
        padding: Any = "valid",
        dilation_rate: int | Sequence[int] = 1,
        groups: int = 1,
        bias: bool = True,
        data_format: str = "channels_last",
        initializer: str | initializers.Initializer = "torch_uniform",
        dtype: DTypeLike = "float32",
        device: DeviceLike | None = None,
    ) -> None:
        inputs, self.outputs = (None, inputs) if outputs is None else (inputs, outputs)
        self.groups = groups
        self._set(inputs, kernel_size, strides, padding, dilation_rate, bias, data_format, initializer, dtype, device)

    def _make(self, inputs: int) -> None:
        self.inputs, outputs = inputs, _check_outputs(self.outputs)
        if inputs % self.groups or outputs % self.groups:
            raise ValueError(f"{inputs} inputs and {outputs} outputs cannot be split into {self.groups} groups")
        self._make_parameters((outputs, inputs // self.groups, *self.kernel_size), outputs)

    def forward(self, x: TensorLike) -> Tensor:
        kernel = ops.transpose(self.weight, self._order)
        return self._with_bias(ops.conv(x, kernel, self.strides, self.padding, self.data_format, self.dilation_rate))


class Conv1d(_Convolution):
    """A convolution over one spatial dimension: ``Conv1d(inputs, outputs, kernel_size)``.

    ``Conv1d(outputs, kernel_size=3)`` learns the number of inputs from the first call. The weight has shape
    ``(outputs, inputs / groups, kernel_size)``.

    Args:
        inputs: The number of channels of the input; left out, that of the first input.
        outputs: The number of channels of the result.
        kernel_size: The size of the window: one number, or one per dimension.
        strides: How far the window moves from one result to the next.
        padding: "valid", "same", "causal" (one dimension only) or numbers, as in :func:`ops.conv`.
        dilation_rate: The distance of neighbouring elements of the window.
        groups: The number of groups of channels that are convolved separately.
        bias: Whether a bias is added.
        data_format: "channels_last" or "channels_first".
        initializer: How the weight starts: a name or function of ``nn.initializers``.
        dtype: The dtype of the parameters.
        device: Where they are made; None: on the default device.

    >>> from ember_ml import nn, ops
    >>> ops.shape(nn.Conv1d(4, kernel_size=3, padding="causal")(ops.ones((2, 10, 5))))
    (2, 10, 4)
    """

    dimensions = 1


class Conv2d(_Convolution):
    """A convolution over two spatial dimensions: ``Conv2d(inputs, outputs, kernel_size)``.

    ``Conv2d(outputs, kernel_size=3)`` learns the number of inputs from the first call. The weight has shape
    ``(outputs, inputs / groups, height, width)``.

    The arguments are those of :class:`Conv1d`.

    >>> from ember_ml import nn, ops
    >>> ops.shape(nn.Conv2d(3, 16, 3, strides=2, padding="same")(ops.ones((8, 32, 32, 3))))
    (8, 16, 16, 16)
    """

    dimensions = 2


class Conv3d(_Convolution):
    """A convolution over three spatial dimensions: ``Conv3d(inputs, outputs, kernel_size)``.

    ``Conv3d(outputs, kernel_size=3)`` learns the number of inputs from the first call. The weight has shape
    ``(outputs, inputs / groups, depth, height, width)``.

    The arguments are those of :class:`Conv1d`.

    >>> from ember_ml import nn, ops
    >>> ops.shape(nn.Conv3d(4, kernel_size=(1, 2, 3))(ops.ones((2, 5, 5, 5, 3))))
    (2, 5, 4, 3, 4)
    """

    dimensions = 3


class _Transposed(Kernel):
    inputs: int | None
    outputs: int | None
    output_padding: Any

    def __init__(
        self,
        inputs: int | None,
        outputs: int | None = None,
        kernel_size: int | Sequence[int] | None = None,
        strides: int | Sequence[int] = 1,
        padding: Any = "valid",
        output_padding: int | Sequence[int] | None = None,
        dilation_rate: int | Sequence[int] = 1,
        bias: bool = True,
        data_format: str = "channels_last",
        initializer: str | initializers.Initializer = "torch_uniform",
        dtype: DTypeLike = "float32",
        device: DeviceLike | None = None,
    ) -> None:
        inputs, self.outputs = (None, inputs) if outputs is None else (inputs, outputs)
        self.output_padding = output_padding
        self._set(inputs, kernel_size, strides, padding, dilation_rate, bias, data_format, initializer, dtype, device)

    def _make(self, inputs: int) -> None:
        self.inputs, outputs = inputs, _check_outputs(self.outputs)
        self._make_parameters((inputs, outputs, *self.kernel_size), outputs)

    def forward(self, x: TensorLike) -> Tensor:
        kernel = ops.transpose(self.weight, self._order)
        how = self.strides, self.padding, self.output_padding, self.data_format, self.dilation_rate
        return self._with_bias(ops.conv_transpose(x, kernel, *how))


class ConvTranspose1d(_Transposed):
    """A convolution turned around, over one spatial dimension: ``ConvTranspose1d(inputs, outputs, kernel_size)``.

    The weight has shape ``(inputs, outputs, kernel_size)``; see :func:`ops.conv_transpose` for sizes.

    Args:
        inputs: The number of channels of the input; left out, that of the first input.
        outputs: The number of channels of the result.
        kernel_size: The size of the window: one number, or one per dimension.
        strides: How far the window moves from one result to the next.
        padding: "valid", "same" or numbers, as in :func:`ops.conv_transpose`.
        output_padding: How many elements to add at the end of the result; None: as the padding needs.
        dilation_rate: The distance of neighbouring elements of the window.
        bias: Whether a bias is added.
        data_format: "channels_last" or "channels_first".
        initializer: How the weight starts: a name or function of ``nn.initializers``.
        dtype: The dtype of the parameters.
        device: Where they are made; None: on the default device.

    >>> from ember_ml import nn, ops
    >>> ops.shape(nn.ConvTranspose1d(4, kernel_size=3, strides=2, padding="same")(ops.ones((2, 10, 5))))
    (2, 20, 4)
    """

    dimensions = 1


class ConvTranspose2d(_Transposed):
    """A convolution turned around, over two spatial dimensions: ``ConvTranspose2d(inputs, outputs, kernel_size)``.

    The weight has shape ``(inputs, outputs, height, width)``; see :func:`ops.conv_transpose` for sizes.

    The arguments are those of :class:`ConvTranspose1d`.

    >>> from ember_ml import nn, ops
    >>> ops.shape(nn.ConvTranspose2d(16, 3, 3, strides=2, padding="same")(ops.ones((8, 16, 16, 16))))
    (8, 32, 32, 3)
    """

    dimensions = 2


class ConvTranspose3d(_Transposed):
    """A convolution turned around, over three spatial dimensions: ``ConvTranspose3d(inputs, outputs, kernel_size)``.

    The weight has shape ``(inputs, outputs, depth, height, width)``; see :func:`ops.conv_transpose` for sizes.

    The arguments are those of :class:`ConvTranspose1d`.

    >>> from ember_ml import nn, ops
    >>> ops.shape(nn.ConvTranspose3d(4, kernel_size=2, strides=2)(ops.ones((2, 5, 4, 3, 3))))
    (2, 10, 8, 6, 4)
    """

    dimensions = 3


def _check_outputs(outputs: int | None) -> int:
    if outputs is None:
        raise TypeError("a convolution needs its number of output channels")
    return outputs
