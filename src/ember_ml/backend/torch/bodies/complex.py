"""Real and imaginary parts on PyTorch."""

from __future__ import annotations

from collections.abc import Callable

import torch

from ember_ml.backend.contract import ByDType
from ember_ml.backend.torch.gradients import is_inside_transform
from ember_ml.core import dtypes as dt


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


def _imag(x: torch.Tensor) -> torch.Tensor:
    # torch 2.13: no rule under vmap for the imaginary part of a conjugate that is not computed yet
    return torch.imag(x.resolve_conj())


def _imag_of_reals(x: torch.Tensor) -> torch.Tensor:
    # an x that records goes in, so that its gradient is 0 and not missing
    return torch.where(torch.zeros_like(x, dtype=torch.bool), x, 0) if x.requires_grad else torch.zeros_like(x)


imag = ByDType(torch.zeros_like, dict.fromkeys(dt.FLOATS, _imag_of_reals) | dict.fromkeys(dt.COMPLEX, _imag))
