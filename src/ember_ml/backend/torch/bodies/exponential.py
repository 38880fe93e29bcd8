"""Exponentials, logarithms and roots on PyTorch."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch

from ember_ml.backend.common import special as formulas
from ember_ml.backend.contract import ByDType
from ember_ml.backend.torch.gradients import may_be_differentiated_again
from ember_ml.backend.torch.half_precision import in_float32
from ember_ml.core import dtypes as dt

exp = torch.exp
exp2 = torch.exp2
log = torch.log
log2 = torch.log2
sqrt = torch.sqrt
rsqrt = torch.rsqrt


_TENS = torch.tensor([float(f"1e{place}") for place in range(-307, 309)], dtype=torch.float64)


def log10(x: torch.Tensor) -> torch.Tensor:
    # torch 2.11 on CUDA: some powers of ten have a logarithm that is not whole
    if x.is_cuda and x.dtype is torch.float32:
        return torch.log10(x.double()).float()
    if x.is_cuda and x.dtype is torch.float64:
        return _make_whole(x, torch.log10(x))
    return torch.log10(x)


def _make_whole(x: torch.Tensor, result: torch.Tensor) -> torch.Tensor:
    """Return ``result``, the logarithms of ``x`` to base 10, with those of powers of ten corrected."""
    whole = torch.nan_to_num(result.detach()).round().clamp(-307, 308)
    tens = _TENS.to(x.device)[whole.to(torch.int64) + 307]
    # the correction is added, so that the gradient stays
    return result + torch.where(x.detach() == tens, whole - result.detach(), 0)


def _of_distinct(native: Callable[..., torch.Tensor], base: float) -> Callable[..., torch.Tensor]:
    """Return ``native``, the logarithm to ``base`` of a sum of powers of it, with its first and second derivatives."""
    # torch 2.13: the gradient at two equal infinities is NaN (pytorch#49724)
    # torch 2.13: the second derivative is NaN where the arguments are far apart
    scale = math.log(base)

    def body(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        is_again = may_be_differentiated_again()
        if not (is_again or x.requires_grad or y.requires_grad):
            return native(x, y)
        is_same = torch.isinf(x) & (x == y)
        a, b = torch.where(is_same, 0, x), torch.where(is_same, 0, y)
        if is_again:
            is_more = a >= b
            larger, smaller = torch.where(is_more, a, b), torch.where(is_more, b, a)
            found = larger - torch.nn.functional.logsigmoid((larger - smaller) * scale) / scale
        else:
            found = native(a, b)
        return torch.where(is_same, torch.maximum(x, y), found)

    return body


logaddexp = _of_distinct(torch.logaddexp, math.e)
_logaddexp2 = _of_distinct(torch.logaddexp2, 2.0)
logaddexp2 = ByDType(_logaddexp2, in_float32(_logaddexp2))


def _complex_expm1(x: torch.Tensor) -> torch.Tensor:
    return formulas.complex_expm1(torch, torch.complex, torch.exp, x)


# torch 2.13: NaN at infinities where the standard has values
expm1 = ByDType(torch.expm1, dict.fromkeys(dt.COMPLEX, _complex_expm1))


def _complex_log1p(x: torch.Tensor) -> torch.Tensor:
    odd = torch.isinf(x.real) | torch.isinf(x.imag)
    return torch.where(odd, torch.log(x), torch.log1p(torch.where(odd, 0, x)))


# torch 2.13: NaN where one part is infinite and the other NaN; there 1 + x is x
log1p = ByDType(torch.log1p, dict.fromkeys(dt.COMPLEX, _complex_log1p))


def _cbrt(x: torch.Tensor) -> torch.Tensor:
    return formulas.cube_root(torch, torch.signbit, x)


cbrt = ByDType(_cbrt, in_float32(_cbrt))
