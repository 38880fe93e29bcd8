"""Dropout."""

from __future__ import annotations

from ember_ml import ops
from ember_ml.nn.modules.module import Module
from ember_ml.typing import Tensor, TensorLike

__all__ = ["Dropout"]


class Dropout(Module):
    """In training, each number becomes 0 with probability ``rate``, and the others are scaled up by ``1 / (1 - rate)``.

    Args:
        rate: The probability of 0.

    >>> from ember_ml import nn, ops
    >>> ops.to_numpy(nn.Dropout(0.5).eval()([1.0, 2.0])).tolist()
    [1.0, 2.0]
    """

    def __init__(self, rate: float = 0.5) -> None:
        if not 0.0 <= rate < 1.0:
            raise ValueError(f"the rate of Dropout is a number from 0 to below 1, not {rate!r}")
        self.rate = rate

    def forward(self, x: TensorLike) -> Tensor:
        return ops.dropout(x, self.rate) if self.training and self.rate else ops.convert_to_tensor(x)
