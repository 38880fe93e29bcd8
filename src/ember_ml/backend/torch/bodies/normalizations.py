"""Normalizations on PyTorch, whose functions take the last dimensions, or the channels second."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F

from ember_ml.backend.common.axes import axes_of, axis_of
from ember_ml.backend.common.normalization import channel_axis, spread_shape
from ember_ml.backend.contract import Body, ByDType
from ember_ml.backend.torch.bodies.reductions import mean as average
from ember_ml.backend.torch.gradients import is_inside_transform, is_recorded_once
from ember_ml.backend.torch.half_precision import HALVES, in_float32

# torch 2.13: the CPU kernel adds up channels that come last one row after the other, which is exact enough for so many
_MOST_ROWS = 4096
_LEAST_PARTS, _MOST_PARTS = 8, 64


def _along_last(native: Body, *names: str) -> Body:
    """Wrap ``native(x, lengths, *parameters, epsilon)``, which takes the last dimensions, to take any."""

    def body(x: torch.Tensor, *rest: Any) -> torch.Tensor:
        *parameters, axis, epsilon = rest
        if axis == -1 and x.ndim:  # as layers have it: nothing is to be moved
            lengths = x.shape[-1:]
            if all(parameter is None or parameter.shape == lengths for parameter in parameters):
                return native(x, lengths, *parameters, epsilon)
        axes = axes_of(axis, x.ndim)
        for name, parameter in zip(names, parameters, strict=True):
            if parameter is not None:
                spread_shape(parameter, name, x.shape, axes)
        last = tuple(range(x.ndim - len(axes), x.ndim))
        lengths = tuple(x.shape[i] for i in axes)
        if axes == last:
            return native(x, lengths, *parameters, epsilon)
        return native(x.movedim(axes, last), lengths, *parameters, epsilon).movedim(last, axes)

    return body


def _group_normalization(
    x: torch.Tensor, groups: int, gamma: torch.Tensor | None, beta: torch.Tensor | None, axis: int, epsilon: float
) -> torch.Tensor:
    place = channel_axis(x.shape, groups, axis)
    # torch 2.13: for channels last in memory, the variance is a difference of two large numbers
    second = x.movedim(place, 1).contiguous()
    if gamma is None and beta is not None:  # torch 2.13: no gradient by beta alone
        gamma = torch.ones_like(beta)
    return torch.group_norm(second, groups, gamma, beta, epsilon).movedim(1, place)


def _moments_by_kernel(
    x: torch.Tensor, place: int, offset: torch.Tensor | None, scale: torch.Tensor | None, epsilon: float
) -> tuple[torch.Tensor, ...]:
    second = x.movedim(place, 1)
    result, mean, _ = torch.native_batch_norm(second, scale, offset, None, None, True, 0.0, epsilon)
    # torch 2.11 on CUDA: the kernel returns 1 / sqrt(variance + epsilon), which loses a small variance
    others = tuple(i for i in range(second.ndim) if i != 1)
    return result.movedim(1, place), mean.detach(), torch.var(second.detach(), others, correction=0)


def moments_normalization(
    x: torch.Tensor, axis: int, offset: torch.Tensor | None, scale: torch.Tensor | None, epsilon: float
) -> tuple[torch.Tensor, ...]:
    if x.dtype in HALVES:
        wide_offset, wide_scale = (y if y is None else y.float() for y in (offset, scale))
        wide = moments_normalization(x.float(), axis, wide_offset, wide_scale, epsilon)
        return tuple(part.to(x.dtype) for part in wide)
    place = axis_of(axis, x.ndim)
    for y, name in ((offset, "offset"), (scale, "scale")):
        if y is not None and y.shape != x.shape[place : place + 1]:
            spread_shape(y, name, x.shape, (place,))
    # torch 2.11 on CUDA: torch.func, which differentiates compiled programs, cannot return the kernel's results
    if x.device.type == "cuda" and x.ndim > 1 and x.numel() and not is_inside_transform():
        return _moments_by_kernel(x, place, offset, scale, epsilon)
    count = x.numel() // max(x.shape[place], 1)
    if count > 1 and is_recorded_once(x, offset, scale):
        if scale is None and offset is not None:  # torch 2.13: no second derivative
            scale = torch.ones_like(offset)
        if place == x.ndim - 1:
            rows = x.reshape(-1, x.shape[-1])
            of_rows = _ManyRows.apply if count > _MOST_ROWS else _moments_by_cpu_kernel
            result, mean, variance = of_rows(rows, offset, scale, epsilon)
            return result.reshape(x.shape), mean, variance
        if place == 1:  # as layers have it: nothing is to be moved
            return _moments_by_cpu_kernel(x.contiguous(), offset, scale, epsilon)
        second = x.movedim(place, 1).contiguous()
        result, mean, variance = _moments_by_cpu_kernel(second, offset, scale, epsilon)
        return result.movedim(1, place), mean, variance
    axes = tuple(i for i in range(x.ndim) if i != place)
    if x.is_cuda:  # one kernel of a compiled program for both
        variance, mean = torch.var_mean(x, axes, correction=0, keepdim=True)
        deviation = x - mean
    else:
        mean = average(x, axes, True)
        deviation = x - mean
        variance = average(deviation.square(), axes, True)
    factor = torch.rsqrt(variance + epsilon)
    result = deviation * (factor if scale is None else factor * scale.reshape(factor.shape))
    result = result if offset is None else result + offset.reshape(factor.shape)
    return result, mean.detach().reshape(-1), variance.detach().reshape(-1)


def _moments_by_cpu_kernel(
    x: torch.Tensor, offset: torch.Tensor | None, scale: torch.Tensor | None, epsilon: float
) -> tuple[torch.Tensor, ...]:
    channels = x.shape[1]
    count = x.numel() // channels
    # as running values that move all the way, since what it saves of the variance is 1 / sqrt(variance + epsilon)
    mean, variance = x.new_zeros(channels), x.new_zeros(channels)
    result = torch.native_batch_norm(x, scale, offset, mean, variance, True, 1.0, epsilon)[0]
    return result, mean, variance * ((count - 1) / count)


class _ManyRows(torch.autograd.Function):
    """The kernels for channels that come last, with the sums of the forward pass taken in parts."""

    @staticmethod
    def forward(
        ctx: Any, rows: torch.Tensor, offset: torch.Tensor | None, scale: torch.Tensor | None, epsilon: float
    ) -> tuple[torch.Tensor, ...]:
        mean, variance = _moments_of_rows(rows)
        result = torch.native_batch_norm(rows, scale, offset, mean, variance, False, 0.0, epsilon)[0]
        ctx.save_for_backward(rows, scale, mean, torch.rsqrt(variance + epsilon))
        ctx.epsilon = epsilon
        ctx.mark_non_differentiable(mean, variance)
        ctx.set_materialize_grads(False)
        return result, mean, variance

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor | None) -> tuple[torch.Tensor | None, ...]:
        rows, scale, mean, inverse = ctx.saved_tensors
        g = gradients[0]
        if g is None:
            return None, None, None, None
        wanted = [ctx.needs_input_grad[0], ctx.needs_input_grad[2], ctx.needs_input_grad[1]]
        by_x, by_scale, by_offset = torch.ops.aten.native_batch_norm_backward(
            g, rows, scale, None, None, mean, inverse, True, ctx.epsilon, wanted
        )
        return by_x, by_offset, by_scale, None


def _moments_of_rows(rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the mean and variance of each column: of parts of the rows first, then of all."""
    parts = math.gcd(len(rows), _MOST_PARTS)
    if parts < _LEAST_PARTS or rows.device.type != "cpu":
        mean = rows.mean(0)
        return mean, (rows - mean).square().mean(0)
    shape = (parts, rows.shape[1])
    means, variances = torch.batch_norm_update_stats(rows.reshape(-1, math.prod(shape)), None, None, 0.0)
    means = means.reshape(shape)
    mean = means.mean(0)
    return mean, (means - mean).square_().add_(variances.reshape(shape)).mean(0)


def _layer_norm(
    x: torch.Tensor, lengths: tuple[int, ...], gamma: torch.Tensor | None, beta: torch.Tensor | None, epsilon: float
) -> torch.Tensor:
    if gamma is None and beta is not None:  # torch 2.13: no second derivative
        gamma = torch.ones_like(beta)
    return F.layer_norm(x, lengths, gamma, beta, epsilon)


_layer_normalization = _along_last(_layer_norm, "gamma", "beta")
_rms_normalization = _along_last(F.rms_norm, "scale")


def rms_normalization(x: torch.Tensor, scale: torch.Tensor | None, axis: Any, epsilon: float) -> torch.Tensor:
    if axis == -1 and scale is not None and x.ndim and scale.shape == x.shape[-1:]:  # as layers call it
        return torch.rms_norm(x, scale.shape, scale, epsilon)
    return _rms_normalization(x, scale, axis, epsilon)


def layer_normalization(
    x: torch.Tensor, gamma: torch.Tensor | None, beta: torch.Tensor | None, axis: Any, epsilon: float
) -> torch.Tensor:
    if axis == -1 and gamma is not None and beta is not None and gamma.ndim:  # as layers call it
        lengths = gamma.shape
        if lengths == beta.shape == x.shape[-1:]:
            return torch.layer_norm(x, lengths, gamma, beta, epsilon)
    return _layer_normalization(x, gamma, beta, axis, epsilon)


group_normalization = ByDType(_group_normalization, in_float32(_group_normalization))
