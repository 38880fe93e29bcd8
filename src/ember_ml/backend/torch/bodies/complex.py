"""The parts of numbers on PyTorch."""

from __future__ import annotations

from collections.abc import Callable

import torch

from ember_ml.backend.contract import ByDType
from ember_ml.core import dtypes as dt

nextafter = torch.nextafter
signbit = ByDType(torch.signbit, dict.fromkeys(dt.UNSIGNED, lambda x: torch.zeros_like(x, dtype=torch.bool)))
copysign = torch.copysign
polar = torch.polar


def map_parts(function: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor) -> torch.Tensor:
    """``function`` of the real and of the imaginary parts."""
    return torch.complex(function(x.real), function(x.imag))


conj = ByDType(torch.positive, dict.fromkeys(dt.COMPLEX, torch.conj_physical))
real = ByDType(torch.positive, dict.fromkeys(dt.COMPLEX, torch.real))
imag = ByDType(torch.zeros_like, dict.fromkeys(dt.COMPLEX, torch.imag))


def ldexp(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Multiplied in three steps, since a power of 2 that is in range may be beyond the dtype by itself."""
    wide = x.to(torch.float32) if x.dtype.itemsize < 4 else x
    exponent = y.to(torch.float32).clamp(-5000, 5000).to(torch.int64)  # the largest unsigned ones fit no signed dtype
    third = torch.div(exponent, 3, rounding_mode="trunc")
    step = torch.exp2(third.to(wide.dtype))
    return (wide * step * torch.exp2((exponent - 2 * third).to(wide.dtype)) * step).to(x.dtype)
