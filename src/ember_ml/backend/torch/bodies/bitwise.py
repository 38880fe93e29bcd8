"""Bitwise ops on PyTorch."""

from __future__ import annotations

import torch

from ember_ml.backend.contract import ByDType
from ember_ml.backend.torch.unsigned import unsigned

bitwise_and = ByDType(torch.bitwise_and, unsigned(torch.bitwise_and))
bitwise_or = ByDType(torch.bitwise_or, unsigned(torch.bitwise_or))
bitwise_xor = ByDType(torch.bitwise_xor, unsigned(torch.bitwise_xor))
bitwise_invert = ByDType(torch.bitwise_not, unsigned(torch.bitwise_not))
bitwise_left_shift = ByDType(torch.bitwise_left_shift, unsigned(torch.bitwise_left_shift))


def _uint64_right_shift(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Shift by one bit and clear the sign, then shift by the remaining bits as a signed integer."""
    bits, count = x.view(torch.int64), y.view(torch.int64)
    shifted = ((bits >> 1) & (2**63 - 1)) >> (count - 1).clamp(min=0)
    is_beyond = (count < 0) | (count > 63)
    return torch.where(is_beyond, 0, torch.where(count == 0, bits, shifted)).view(torch.uint64)


bitwise_right_shift = ByDType(torch.bitwise_right_shift, unsigned(torch.bitwise_right_shift, _uint64_right_shift))
