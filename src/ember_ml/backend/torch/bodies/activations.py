"""Activations on PyTorch; its elementwise kernels compute half precision in float32."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from ember_ml.backend.common.axes import axis_of
from ember_ml.backend.contract import ByDType
from ember_ml.backend.torch.half_precision import in_float32
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
soft_shrink = F.softshrink
threshold = F.threshold


def relu(x: torch.Tensor) -> torch.Tensor:
    return torch.positive(x) if x.dtype in UNSIGNED else torch.relu(x)


def gelu(x: torch.Tensor, approximate: bool) -> torch.Tensor:
    if approximate:
        return F.gelu(x, approximate="tanh")
    if x.is_cuda:  # torch 2.11 on CUDA: NaN for minus infinity only (pytorch#185770)
        return F.gelu(x)
    # torch 2.13: doubles its argument, which overflows, and returns NaN for infinity (pytorch#185770)
    return torch.where(x > 10, x, F.gelu(torch.clamp(x, max=10)))


def softplus(x: torch.Tensor) -> torch.Tensor:
    return F.softplus(x, threshold=40)  # torch 2.13: linear from 20 on by default, where the error is 2e-9


def glu(x: torch.Tensor, axis: int) -> torch.Tensor:
    return F.glu(x, axis_of(axis, x.ndim))


def _softmax(x: torch.Tensor, axis: int) -> torch.Tensor:
    return torch.softmax(x, axis_of(axis, x.ndim))


def _log_softmax(x: torch.Tensor, axis: int) -> torch.Tensor:
    return torch.log_softmax(x, axis_of(axis, x.ndim))


softmax = ByDType(_softmax, in_float32(_softmax))
log_softmax = ByDType(_log_softmax, in_float32(_log_softmax))
