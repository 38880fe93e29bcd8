"""Special functions on PyTorch."""

from __future__ import annotations

import torch

from ember_ml.backend import formulas
from ember_ml.backend.contract import ByDType
from ember_ml.backend.torch.halves import in_float32

erf = torch.erf
erfc = torch.erfc
erfinv = torch.erfinv
lgamma = torch.lgamma
digamma = torch.digamma
xlogy = torch.xlogy


def _i0(x: torch.Tensor) -> torch.Tensor:
    return formulas.bessel_i0(torch, torch.exp, x, x.dtype is torch.float32)  # torch gives NaN for infinity


i0 = ByDType(_i0, in_float32(_i0))
