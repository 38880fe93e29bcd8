"""Special functions and activations on PyTorch."""

from __future__ import annotations

import torch

from ember_ml.backend import formulas
from ember_ml.backend.axes import axis_of
from ember_ml.backend.contract import ByDType
from ember_ml.backend.torch.halves import in_float32
from ember_ml.backend.torch.unsigned import UNSIGNED

erf = torch.erf
erfc = torch.erfc
erfinv = torch.erfinv
lgamma = torch.lgamma
digamma = torch.digamma
xlogy = torch.xlogy
sigmoid = torch.sigmoid


def _i0(x: torch.Tensor) -> torch.Tensor:
    return formulas.bessel_i0(torch, torch.exp, x, x.dtype is torch.float32)  # torch gives NaN for infinity


i0 = ByDType(_i0, in_float32(_i0))


def relu(x: torch.Tensor) -> torch.Tensor:
    return torch.positive(x) if x.dtype in UNSIGNED else torch.relu(x)


def _softmax(x: torch.Tensor, axis: int) -> torch.Tensor:
    return torch.softmax(x, axis_of(axis, x.ndim))


def _log_softmax(x: torch.Tensor, axis: int) -> torch.Tensor:
    return torch.log_softmax(x, axis_of(axis, x.ndim))


softmax = ByDType(_softmax, in_float32(_softmax))
log_softmax = ByDType(_log_softmax, in_float32(_log_softmax))
