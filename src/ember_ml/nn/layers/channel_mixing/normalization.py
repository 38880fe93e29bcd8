"""Normalizations: numbers moved to mean 0 and scaled to variance 1, then to a scale and an offset that are learned."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from ember_ml import ops
from ember_ml.backend.common.convolution import is_channels_first
from ember_ml.nn.initializers import constant
from ember_ml.nn.layers.base import Layer
from ember_ml.nn.modules.parameter import Buffer
from ember_ml.tensor import EmberTensor
from ember_ml.typing import DeviceLike, DTypeLike, Tensor, TensorLike

__all__ = ["BatchNorm", "GroupNorm", "InstanceNorm", "LayerNorm", "RMSNorm"]


class _Rows(Layer):
    """The base class of layers that normalize the last dimensions of each position alone."""

    shape: Any
    epsilon: float

    def __init__(
        self,
        shape: int | Sequence[int] | None,
        epsilon: float,
        weight: bool,
        bias: bool,
        dtype: DTypeLike,
        device: DeviceLike | None,
    ) -> None:
        if epsilon < 0:
            raise ValueError(f"the epsilon of {type(self).__name__} is a number from 0 up, not {epsilon!r}")
        self.shape, self.epsilon, self._dtype, self._device = _as_shape(shape), epsilon, dtype, device
        self._has_weight, self._has_bias = weight, bias
        if self.shape is None:
            self.is_built = False
        else:
            self.build(self.shape)

    def build(self, shape: tuple[int, ...]) -> None:
        self.shape = (shape[-1],) if self.shape is None else self.shape
        self._axes = tuple(range(-len(self.shape), 0)) if len(self.shape) > 1 else -1
        _make_affine(self, self.shape, self._has_weight, self._has_bias)


class LayerNorm(_Rows):
    """``(x - mean) / sqrt(variance + epsilon) * weight + bias`` with the mean and variance of each position.

    They are taken over the last axis, whose length the first call tells, or over the last axes of the given ``shape``.
    Without ``affine`` there is neither weight nor bias.

    Args:
        shape: The lengths of the axes that are normalized; None: the last axis.
        epsilon: Added to the variance, against division by 0.
        affine: Whether there are a weight and a bias.
        bias: Whether there is a bias besides the weight.
        dtype: The dtype of the parameters.
        device: Where they are made; None: on the default device.

    >>> from ember_ml import nn, ops
    >>> ops.to_numpy(ops.round(nn.LayerNorm()([[1.0, 3.0], [10.0, 30.0]]), 3)).tolist()
    [[-1.0, 1.0], [-1.0, 1.0]]
    """

    def __init__(
        self,
        shape: int | Sequence[int] | None = None,
        epsilon: float = 1e-5,
        affine: bool = True,
        bias: bool = True,
        dtype: DTypeLike = "float32",
        device: DeviceLike | None = None,
    ) -> None:
        super().__init__(shape, epsilon, affine, affine and bias, dtype, device)

    def forward(self, x: TensorLike) -> Tensor:
        return ops.layer_normalization(x, self.weight, self.bias, self._axes, self.epsilon)


class RMSNorm(_Rows):
    """``x / sqrt(mean(x**2) + epsilon) * weight`` with the mean of each position, over the axes that LayerNorm takes.

    Args:
        shape: The lengths of the axes that are normalized; None: the last axis.
        epsilon: Added to the mean square, against division by 0.
        affine: Whether there is a weight.
        dtype: The dtype of the parameters.
        offset: Added to the weight, which then starts at ``1 - offset``; 1 in Gemma, whose weights are small.
        device: Where the parameters are made; None: on the default device.

    >>> from ember_ml import nn, ops
    >>> ops.to_numpy(ops.round(nn.RMSNorm()([[1.0, -1.0], [30.0, -30.0]]), 3)).tolist()
    [[1.0, -1.0], [1.0, -1.0]]
    """

    offset: float

    def __init__(
        self,
        shape: int | Sequence[int] | None = None,
        epsilon: float = 1e-5,
        affine: bool = True,
        dtype: DTypeLike = "float32",
        offset: float = 0.0,
        device: DeviceLike | None = None,
    ) -> None:
        self.offset = offset
        super().__init__(shape, epsilon, affine, False, dtype, device)

    def build(self, shape: tuple[int, ...]) -> None:
        super().build(shape)
        if self.offset and self.weight is not None:
            self.add_parameter("weight", self.shape, constant(1.0 - self.offset), self._dtype)

    def forward(self, x: TensorLike) -> Tensor:
        weight = ops.add(self.weight, self.offset) if self.offset and self.weight is not None else self.weight
        return ops.rms_normalization(x, weight, self._axes, self.epsilon)


class _Channels(Layer):
    """The base class of layers with one weight and one bias for each channel."""

    channels: int | None
    epsilon: float
    data_format: str

    def __init__(
        self,
        channels: int | None,
        epsilon: float,
        affine: bool,
        data_format: str,
        dtype: DTypeLike,
        device: DeviceLike | None,
    ) -> None:
        self.channels, self.epsilon, self.data_format = channels, epsilon, data_format
        self._has_affine, self._dtype, self._device = affine, dtype, device
        self._axis = 1 if is_channels_first(data_format, 3) else -1
        if channels is None:
            self.is_built = False
        else:
            self._make(channels)

    def build(self, shape: tuple[int, ...]) -> None:
        if len(shape) < 2:
            raise ValueError(f"{type(self).__name__} takes (batch, ..., channels), not a tensor of shape {shape}")
        self._make(shape[self._axis])

    def _make(self, channels: int) -> None:
        self.channels = channels
        _make_affine(self, (channels,), self._has_affine, self._has_affine)


class BatchNorm(_Channels):
    """``(x - mean) / sqrt(variance + epsilon) * weight + bias`` with the mean and variance of each channel.

    In training they are those of the batch, and ``running_mean`` and ``running_var`` move towards them by ``momentum``;
    in use those take their place. The running variance is that of the population, as PyTorch estimates it: over n - 1.
    ``data_format="channels_first"`` takes the channels from the second axis.

    Args:
        channels: The number of channels; None: that of the first input.
        momentum: By which part the running values move towards those of the batch.
        epsilon: Added to the variance, against division by 0.
        affine: Whether there are a weight and a bias.
        data_format: "channels_last" or "channels_first".
        dtype: The dtype of the parameters.
        device: Where they are made; None: on the default device.

    >>> from ember_ml import nn, ops
    >>> layer = nn.BatchNorm(momentum=0.5)
    >>> ops.to_numpy(ops.round(layer([[1.0, 10.0], [3.0, 30.0]]), 3)).tolist()
    [[-1.0, -1.0], [1.0, 1.0]]
    >>> ops.to_numpy(layer.running_mean).tolist(), ops.to_numpy(layer.running_var).tolist()
    ([1.0, 10.0], [1.5, 100.5])
    """

    momentum: float

    running_mean: Any
    running_var: Any
    ignored_in_states: ClassVar[tuple[str, ...]] = (
        "num_batches_tracked",
    )  # torch 2.13 counts batches, for a momentum that this class lacks

    def __init__(
        self,
        channels: int | None = None,
        momentum: float = 0.1,
        epsilon: float = 1e-5,
        affine: bool = True,
        data_format: str = "channels_last",
        dtype: DTypeLike = "float32",
        device: DeviceLike | None = None,
    ) -> None:
        self.momentum = momentum
        super().__init__(channels, epsilon, affine, data_format, dtype, device)

    def _make(self, channels: int) -> None:
        super()._make(channels)
        self.running_mean = Buffer(ops.zeros((channels,), self._dtype, self._device))
        self.running_var = Buffer(ops.ones((channels,), self._dtype, self._device))

    def forward(self, x: TensorLike) -> Tensor:
        axis, bias, weight, epsilon = self._axis, self.bias, self.weight, self.epsilon
        if not self.training:
            return ops.batch_normalization(x, self.running_mean, self.running_var, axis, bias, weight, epsilon)
        result, mean, variance = ops.moments_normalization(x, axis, bias, weight, epsilon)
        self._remember(mean, variance, ops.size(x) // max(ops.size(mean), 1))
        return result

    def _remember(self, mean: Tensor, variance: Tensor, count: int) -> None:
        """Move the running mean and variance towards those of a batch of ``count`` elements per channel."""
        if count < 2:
            raise ValueError("BatchNorm is trained with more than one number for each channel; one has no variance")
        share = self.momentum
        self.running_mean = _move_towards(self.running_mean, mean, share, share)
        self.running_var = _move_towards(self.running_var, variance, share, share * count / (count - 1))


class GroupNorm(_Channels):
    """``(x - mean) / sqrt(variance + epsilon) * weight + bias`` with the mean and variance of groups of channels.

    Each sample of the batch is normalized by itself, each of its ``groups`` over the positions and channels in it.

    Args:
        groups: The number of groups; it divides that of the channels.
        channels: The number of channels; None: that of the first input.
        epsilon: Added to the variance, against division by 0.
        affine: Whether there are a weight and a bias.
        data_format: "channels_last" or "channels_first".
        dtype: The dtype of the parameters.
        device: Where they are made; None: on the default device.

    >>> from ember_ml import nn, ops
    >>> ops.to_numpy(ops.round(nn.GroupNorm(2)([[1.0, 3.0, 10.0, 30.0]]), 3)).tolist()
    [[-1.0, 1.0, -1.0, 1.0]]
    """

    groups: int

    def __init__(
        self,
        groups: int,
        channels: int | None = None,
        epsilon: float = 1e-5,
        affine: bool = True,
        data_format: str = "channels_last",
        dtype: DTypeLike = "float32",
        device: DeviceLike | None = None,
    ) -> None:
        self.groups = groups
        super().__init__(channels, epsilon, affine, data_format, dtype, device)

    def forward(self, x: TensorLike) -> Tensor:
        return ops.group_normalization(x, self.groups, self.weight, self.bias, self._axis, self.epsilon)


class InstanceNorm(_Channels):
    """``(x - mean) / sqrt(variance + epsilon)`` with the mean and variance of each channel of each sample.

    With ``affine``, times a weight and plus a bias for each channel.

    The arguments are those of :class:`GroupNorm`, without ``groups``.

    >>> from ember_ml import nn, ops
    >>> ops.to_numpy(ops.round(nn.InstanceNorm()([[[1.0, 10.0], [3.0, 30.0]]]), 3)).tolist()
    [[[-1.0, -1.0], [1.0, 1.0]]]
    """

    def __init__(
        self,
        channels: int | None = None,
        epsilon: float = 1e-5,
        affine: bool = False,
        data_format: str = "channels_last",
        dtype: DTypeLike = "float32",
        device: DeviceLike | None = None,
    ) -> None:
        super().__init__(channels, epsilon, affine, data_format, dtype, device)

    def forward(self, x: TensorLike) -> Tensor:
        return ops.group_normalization(x, self.channels or 0, self.weight, self.bias, self._axis, self.epsilon)


def _as_shape(shape: int | Sequence[int] | None) -> tuple[int, ...] | None:
    return shape if shape is None else (shape,) if isinstance(shape, int) else tuple(shape)


def _make_affine(layer: Any, shape: tuple[int, ...], weight: bool, bias: bool) -> None:
    for name, has_it, initializer in (("weight", weight, "ones"), ("bias", bias, "zeros")):
        if has_it:
            layer.add_parameter(name, shape, initializer, layer._dtype)
        else:
            setattr(layer, name, None)


def _move_towards(running: Tensor, found: Tensor, share: float, factor: float) -> Tensor:
    """Return ``(1 - share) * running + factor * found``, native and in the dtype of ``running``."""
    found = found.native if type(found) is EmberTensor else found
    moved = ops.add(ops.multiply(running, 1.0 - share), ops.multiply(found, factor))
    return moved if moved.dtype == running.dtype else ops.cast(moved, running.dtype)
