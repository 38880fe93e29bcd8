"""Special functions on PyTorch."""

from __future__ import annotations

import torch

from ember_ml.backend.common import special as formulas
from ember_ml.backend.contract import ByDType
from ember_ml.backend.torch.gradients import is_inside_transform
from ember_ml.backend.torch.half_precision import in_float32

erf = ByDType(torch.erf, in_float32(torch.erf))  # torch 2.13: 1e-7 off in half precision, near 0 too
erfc = torch.erfc
erfinv = torch.erfinv
lgamma = torch.lgamma
digamma = torch.digamma


def xlogy(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    y = torch.as_tensor(y, dtype=x.dtype, device=x.device)  # torch 2.13: makes a Python float float32
    if not (x.requires_grad or y.requires_grad or is_inside_transform()):
        return torch.xlogy(x, y)
    is_odd = (x == 0) & ((y <= 0) | torch.isinf(y))  # torch 2.13: infinite or NaN gradient
    return torch.where(is_odd, 0, torch.xlogy(x, torch.where(is_odd, 1, y)))


def _i0(x: torch.Tensor) -> torch.Tensor:
    if x.requires_grad or is_inside_transform():
        is_infinite = torch.isinf(x)
        return torch.where(is_infinite, torch.abs(x), torch.special.i0(torch.where(is_infinite, 0, x)))
    return formulas.bessel_i0(torch, torch.exp, x, x.dtype is torch.float32)  # torch 2.13: NaN for infinity


i0 = ByDType(_i0, in_float32(_i0))
