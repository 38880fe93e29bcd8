"""Signs, neighbours and exponents of floats on PyTorch."""

from __future__ import annotations

import torch

from ember_ml.backend.contract import ByDType
from ember_ml.core import dtypes as dt

nextafter = torch.nextafter
signbit = ByDType(torch.signbit, dict.fromkeys(dt.UNSIGNED, lambda x: torch.zeros_like(x, dtype=torch.bool)))
copysign = torch.copysign


def ldexp(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Multiply in four steps, since the power of 2 alone may be out of range when the product is not."""
    wide = x.to(torch.float32) if x.dtype.itemsize < 4 else x
    limit = 4000 if wide.dtype is torch.float64 else 480
    exponent = y.to(torch.float32).clamp(-limit, limit).to(torch.int64)  # no signed dtype holds the largest uint64
    quarter = torch.div(exponent, 4, rounding_mode="trunc")
    step = torch.exp2(quarter.to(wide.dtype))
    return (wide * step * step * step * torch.exp2((exponent - 3 * quarter).to(wide.dtype))).to(x.dtype)
