"""Real and imaginary parts, signs and bits of floats, on PyTorch."""

from __future__ import annotations

from collections.abc import Callable

import torch

from ember_ml.backend.contract import ByDType
from ember_ml.backend.torch.gradients import is_inside_transform
from ember_ml.core import dtypes as dt

nextafter = torch.nextafter
signbit = ByDType(torch.signbit, dict.fromkeys(dt.UNSIGNED, lambda x: torch.zeros_like(x, dtype=torch.bool)))
copysign = torch.copysign


def polar(r: torch.Tensor, angle: torch.Tensor) -> torch.Tensor:
    if r.requires_grad or angle.requires_grad or is_inside_transform():
        # torch 2.13: the gradient by a negative modulus has the wrong sign, and by 0 it is 0
        return torch.complex(r * torch.cos(angle), r * torch.sin(angle))
    return torch.polar(r, angle)


def map_parts(function: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor) -> torch.Tensor:
    """Apply ``function`` to the real and to the imaginary part."""
    return torch.complex(function(x.real), function(x.imag))


conj = ByDType(torch.positive, dict.fromkeys(dt.COMPLEX, torch.conj_physical))
real = ByDType(torch.positive, dict.fromkeys(dt.COMPLEX, torch.real))
imag = ByDType(torch.zeros_like, dict.fromkeys(dt.COMPLEX, torch.imag))


def ldexp(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Multiply in four steps, since the power of 2 alone may be out of range when the product is not."""
    wide = x.to(torch.float32) if x.dtype.itemsize < 4 else x
    limit = 4000 if wide.dtype is torch.float64 else 480
    exponent = y.to(torch.float32).clamp(-limit, limit).to(torch.int64)  # no signed dtype holds the largest uint64
    quarter = torch.div(exponent, 4, rounding_mode="trunc")
    step = torch.exp2(quarter.to(wide.dtype))
    return (wide * step * step * step * torch.exp2((exponent - 3 * quarter).to(wide.dtype))).to(x.dtype)
