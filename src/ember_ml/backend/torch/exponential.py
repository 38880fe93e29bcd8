"""Exponentials, logarithms and roots on PyTorch."""

from __future__ import annotations

import torch

from ember_ml import dtypes as dt
from ember_ml.backend import formulas
from ember_ml.backend.contract import ByDType
from ember_ml.backend.torch.halves import in_float32

exp = torch.exp
exp2 = torch.exp2
log = torch.log
log2 = torch.log2
log10 = torch.log10
sqrt = torch.sqrt
rsqrt = torch.rsqrt
logaddexp = torch.logaddexp
logaddexp2 = ByDType(torch.logaddexp2, in_float32(torch.logaddexp2))


def _complex_expm1(x: torch.Tensor) -> torch.Tensor:
    return formulas.complex_expm1(torch, torch.complex, torch.exp, x)


# torch gives NaN at infinities where the standard has values
expm1 = ByDType(torch.expm1, dict.fromkeys(dt.COMPLEX, _complex_expm1))


def _complex_log1p(x: torch.Tensor) -> torch.Tensor:
    odd = torch.isinf(x.real) | torch.isinf(x.imag)
    return torch.where(odd, torch.log(x), torch.log1p(torch.where(odd, 0, x)))


# torch gives NaN at infinities, where 1 + x is x
log1p = ByDType(torch.log1p, dict.fromkeys(dt.COMPLEX, _complex_log1p))


def _cbrt(x: torch.Tensor) -> torch.Tensor:
    return formulas.cube_root(torch, x)


cbrt = ByDType(_cbrt, in_float32(_cbrt))
