"""Circular and hyperbolic functions on PyTorch."""

from __future__ import annotations

import torch

from ember_ml.backend.common import special as formulas
from ember_ml.backend.contract import Body, ByDType
from ember_ml.backend.torch.gradients import is_inside_transform
from ember_ml.backend.torch.half_precision import in_float32
from ember_ml.core import dtypes as dt

tan = torch.tan
arcsin = torch.arcsin
arctan = torch.arctan
arctan2 = torch.arctan2
arcsinh = torch.arcsinh
arccosh = torch.arccosh
arctanh = torch.arctanh
deg2rad = torch.deg2rad
rad2deg = torch.rad2deg


def _complex_sin(x: torch.Tensor) -> torch.Tensor:
    if not x.is_cuda:
        return torch.sin(x)
    sine, cosine = torch.sin(x.real), torch.cos(x.real)
    return torch.complex(_times(sine, torch.cosh(x.imag)), _times(cosine, torch.sinh(x.imag)))


def _complex_cos(x: torch.Tensor) -> torch.Tensor:
    if not x.is_cuda:
        return torch.cos(x)
    sine, cosine = torch.sin(x.real), torch.cos(x.real)
    return torch.complex(_times(cosine, torch.cosh(x.imag)), -_times(sine, torch.sinh(x.imag)))


def _times(circular: torch.Tensor, hyperbolic: torch.Tensor) -> torch.Tensor:
    """Multiply, with 0 times infinity equal to 0."""
    # torch 2.11 on CUDA: NaN there
    return torch.where(circular == 0, torch.where(hyperbolic < 0, -circular, circular), circular * hyperbolic)


sin = ByDType(torch.sin, dict.fromkeys(dt.COMPLEX, _complex_sin))
cos = ByDType(torch.cos, dict.fromkeys(dt.COMPLEX, _complex_cos))


def hypot(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    if not (x.requires_grad or y.requires_grad or is_inside_transform()):
        return torch.hypot(x, y)
    is_zero = (x == 0) & (y == 0)  # torch 2.13: NaN gradient there
    return torch.where(is_zero, 0, torch.hypot(torch.where(is_zero, 1, x), y))


def _avoid_overflow(native: Body, odd: bool) -> Body:
    """Return ``native``, a hyperbolic function, also where half the exponential is finite and the whole is not."""
    # torch 2.13: infinite there

    def body(x: torch.Tensor) -> torch.Tensor:
        is_beyond = x.abs() > (709.0 if x.dtype is torch.float64 else 88.0)
        root = torch.exp(torch.where(is_beyond, x.abs(), 0) / 2)
        size = 0.5 * root * root
        return torch.where(is_beyond, size * torch.sign(x) if odd else size, native(torch.where(is_beyond, 0, x)))

    return body


_sinh, _cosh = _avoid_overflow(torch.sinh, odd=True), _avoid_overflow(torch.cosh, odd=False)
sinh = ByDType(torch.sinh, {dt.float32: _sinh, dt.float64: _sinh} | in_float32(_sinh))
cosh = ByDType(torch.cosh, {dt.float32: _cosh, dt.float64: _cosh} | in_float32(_cosh))


def _complex_arccos(x: torch.Tensor) -> torch.Tensor:
    result = torch.arccos(x)
    # torch 2.13: loses the sign of a zero imaginary part, which is opposite to the argument's
    return torch.complex(result.real, torch.copysign(result.imag, -x.imag))


arccos = ByDType(torch.arccos, {dt.complex128: _complex_arccos})


def _complex_tanh(x: torch.Tensor) -> torch.Tensor:
    return formulas.complex_tanh(torch, torch.complex, x)


# torch 2.13: at infinities the imaginary zero has the sign of sin(2b); in the standard, that of b
tanh = ByDType(torch.tanh, dict.fromkeys(dt.COMPLEX, _complex_tanh))


def _sinc(x: torch.Tensor) -> torch.Tensor:
    return formulas.sinc(torch, torch.sin, x)


sinc = ByDType(_sinc, in_float32(_sinc))
