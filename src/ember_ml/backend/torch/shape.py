"""Shapes, on PyTorch."""

from __future__ import annotations

from typing import Any

import torch

from ember_ml.backend.contract import ByDType
from ember_ml.backend.shapes import as_shape, new_shape

# torch takes no single int for a shape
reshape = ByDType(torch.reshape, general=lambda x, shape: torch.reshape(x, new_shape(shape)))


def broadcast_to(x: torch.Tensor, shape: Any) -> torch.Tensor:
    return torch.broadcast_to(x, as_shape(shape))
