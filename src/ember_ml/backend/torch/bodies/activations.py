"""Activations on PyTorch; its elementwise kernels compute half precision in float32."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F

from ember_ml.backend.common.activations import check_threshold
from ember_ml.backend.common.axes import axes_of, axis_of, fold_axes
from ember_ml.backend.common.special import NORMAL_TAIL, NORMAL_TAIL_SCALE
from ember_ml.backend.contract import Body, ByDType
from ember_ml.backend.torch.gradients import is_inside_transform, is_recorded_once
from ember_ml.backend.torch.half_precision import HALVES, in_float32
from ember_ml.backend.torch.unsigned import UNSIGNED

leaky_relu = F.leaky_relu
elu = F.elu
selu = F.selu
celu = F.celu
sigmoid = torch.sigmoid
log_sigmoid = F.logsigmoid
silu = F.silu
mish = F.mish
hard_shrink = F.hardshrink
threshold = F.threshold


def soft_shrink(x: torch.Tensor, threshold: float) -> torch.Tensor:
    check_threshold(threshold)
    return F.softshrink(x, threshold)


def relu(x: torch.Tensor) -> torch.Tensor:
    return torch.positive(x) if x.dtype in UNSIGNED else torch.relu(x)


def gelu(x: torch.Tensor, approximate: bool) -> torch.Tensor:
    if approximate:
        return F.gelu(x, approximate="tanh")
    if x.is_cuda:  # one kernel; torch 2.11 on CUDA: right to 1e-7 only below 0 (pytorch#185770)
        return F.gelu(x)
    # torch 2.13: cancels digits below 0, and returns NaN for infinity (pytorch#185770)
    return _exact_gelu(x.to(torch.float32)).to(x.dtype) if x.dtype in HALVES else _exact_gelu(x)


def _exact_gelu(x: torch.Tensor) -> torch.Tensor:
    if is_recorded_once(x):
        return _ExactGelu.apply(x)
    if torch.compiler.is_compiling() and x.dtype is torch.float32:
        return x * _normal_distribution(x)
    if x.requires_grad or is_inside_transform():
        return 0.5 * x * torch.erfc(x * -math.sqrt(0.5))
    return _compute_exact_gelu(x)


def _normal_distribution(x: torch.Tensor) -> torch.Tensor:
    """Return the probability of a normal variable below ``x``, for a compiler that makes one loop of it.

    There ``torch.erfc`` takes six times as long as ``torch.erf``, which loses the digits of small probabilities: these
    are a polynomial. ``erf`` has the gradient; its value is subtracted again.
    """
    half_erf, constant = 0.5 * torch.erf(x * math.sqrt(0.5)), x.detach()
    t = 1 / (1 + NORMAL_TAIL_SCALE * constant.abs())
    series = torch.full_like(t, NORMAL_TAIL[0])
    for coefficient in NORMAL_TAIL[1:]:
        series = series * t + coefficient
    tail = torch.exp(-0.5 * constant * constant) * t * series
    return torch.where(constant < 0, tail, 1 - tail) + (half_erf - half_erf.detach())


def _compute_exact_gelu(x: torch.Tensor) -> torch.Tensor:
    result = (x * -math.sqrt(0.5)).erfc_()
    # one pass for both factors, halved first: twice the largest number is infinite; negative zero changes no product
    return torch.addcmul(x.new_full((), -0.0), result, x, value=0.5, out=result)


class _ExactGelu(torch.autograd.Function):
    """Our forward pass with PyTorch's own backward pass, which is one kernel."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return _compute_exact_gelu(x)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> torch.Tensor:
        (x,) = ctx.saved_tensors
        return torch.ops.aten.gelu_backward(gradients[0], x)


def softplus(x: torch.Tensor) -> torch.Tensor:
    return F.softplus(x, threshold=40)  # torch 2.13: linear from 20 on by default, where the error is 2e-9


def glu(x: torch.Tensor, axis: int) -> torch.Tensor:
    return F.glu(x, axis_of(axis, x.ndim))


def _over_axes(native: Body) -> Body:
    """Wrap ``native(x, axis)`` to take several axes together."""

    def body(x: torch.Tensor, axis: Any) -> torch.Tensor:
        if type(axis) is int:
            return native(x, axis_of(axis, x.ndim))
        axes = axes_of(axis, x.ndim)
        order, together = fold_axes(x.shape, axes)
        moved = x.permute(order)
        result = native(moved.reshape(together), len(together) - 1).reshape(moved.shape)
        return result.permute(tuple(order.index(place) for place in range(x.ndim)))

    return body


_softmax = _over_axes(torch.softmax)
_log_softmax = _over_axes(torch.log_softmax)
softmax = ByDType(_softmax, in_float32(_softmax))
log_softmax = ByDType(_log_softmax, in_float32(_log_softmax))
