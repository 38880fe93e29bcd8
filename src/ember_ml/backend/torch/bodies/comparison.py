"""Comparison, logic and choice on PyTorch."""

from __future__ import annotations

from collections.abc import Callable

import torch

from ember_ml.backend.contract import ByDType
from ember_ml.backend.torch.readable_values import is_mapped
from ember_ml.backend.torch.unsigned import ordered, unsigned
from ember_ml.core import dtypes as dt

equal = torch.eq
not_equal = torch.ne
less = ByDType(torch.less, ordered(torch.less))
less_equal = ByDType(torch.less_equal, ordered(torch.less_equal))
greater = ByDType(torch.greater, ordered(torch.greater))
greater_equal = ByDType(torch.greater_equal, ordered(torch.greater_equal))
isfinite = torch.isfinite
isinf = torch.isinf
isnan = torch.isnan
isreal = torch.isreal
where = ByDType(torch.where, unsigned(torch.where))


def _of_integers(x: torch.Tensor) -> torch.Tensor:
    return torch.zeros_like(x, dtype=torch.bool)


isneginf = ByDType(torch.isneginf, dict.fromkeys(dt.UNSIGNED, _of_integers))
isposinf = ByDType(torch.isposinf, dict.fromkeys(dt.UNSIGNED, _of_integers))


def _of_truth(native: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]) -> Callable[..., torch.Tensor]:
    """Apply ``native`` to the truth values of both arguments."""
    # torch 2.13: no logical functions of uint16, uint32 and uint64 (pytorch#58734)
    return lambda x, y: native(x.to(torch.bool), y.to(torch.bool))


logical_and = _of_truth(torch.logical_and)
logical_or = _of_truth(torch.logical_or)
logical_xor = _of_truth(torch.logical_xor)


def logical_not(x: torch.Tensor) -> torch.Tensor:
    return torch.logical_not(x.to(torch.bool))


def _wide(x: torch.Tensor) -> torch.Tensor:
    """Cast half precision to float32, integers and bools to float64."""
    if not x.is_floating_point() and not x.is_complex():
        return x.to(torch.float64)
    return x.to(torch.float32) if x.dtype.itemsize == 2 else x


def isclose(x: torch.Tensor, y: torch.Tensor, rtol: float, atol: float, equal_nan: bool) -> torch.Tensor:
    x, y = _wide(x), _wide(y)
    close = (torch.abs(x - y) <= atol + rtol * torch.abs(y)) & torch.isfinite(y) | (x == y)
    return close | (torch.isnan(x) & torch.isnan(y)) if equal_nan else close


def allclose(x: torch.Tensor, y: torch.Tensor, rtol: float, atol: float, equal_nan: bool) -> torch.Tensor:
    return torch.all(isclose(x, y, rtol, atol, equal_nan))


def _isin(x: torch.Tensor, test_elements: torch.Tensor, invert: bool) -> torch.Tensor:
    if is_mapped(x) or is_mapped(test_elements):  # torch 2.13: has no batching rule, and says so
        found = (x[..., None] == test_elements.reshape(-1)).any(-1)
        return ~found if invert else found
    return torch.isin(x, test_elements.reshape(-1), invert=invert)  # torch 2.13: refuses strided elements


def _isin_of_bools(x: torch.Tensor, test_elements: torch.Tensor, invert: bool) -> torch.Tensor:
    return _isin(x.to(torch.uint8), test_elements.to(torch.uint8), invert)


def _isin_of_halves(x: torch.Tensor, test_elements: torch.Tensor, invert: bool) -> torch.Tensor:
    return _isin(x.to(torch.float32), test_elements.to(torch.float32), invert)


def _isin_of_complex(x: torch.Tensor, test_elements: torch.Tensor, invert: bool) -> torch.Tensor:
    found = (x[..., None] == test_elements.reshape(-1)).any(-1)
    return ~found if invert else found


isin = ByDType(
    _isin,
    unsigned(_isin)
    | {dt.bool_: _isin_of_bools}
    | dict.fromkeys(dt.HALVES, _isin_of_halves)
    | dict.fromkeys(dt.COMPLEX, _isin_of_complex),
)
