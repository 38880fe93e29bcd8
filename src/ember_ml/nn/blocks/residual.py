"""Residual connections."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ember_ml import ops
from ember_ml.nn.modules.sequential import Sequential
from ember_ml.typing import Tensor, TensorLike

__all__ = ["Residual"]


class Residual(Sequential):
    """``x`` plus what modules or functions, one after another, make of it; they keep its shape.

    >>> from ember_ml import nn, ops
    >>> block = nn.blocks.Residual(nn.LayerNorm(), nn.MLP(32))
    >>> ops.shape(block(ops.ones((2, 5, 8))))
    (2, 5, 8)
    >>> ops.to_numpy(nn.blocks.Residual(ops.square)([1.0, 3.0])).tolist()
    [2.0, 12.0]
    """

    def __init__(self, *parts: Callable[[Any], Any]) -> None:
        super().__init__(*parts)
        if not parts:
            raise ValueError("Residual takes at least one module or function")

    def forward(self, x: TensorLike) -> Tensor:
        return ops.add(x, super().forward(x))
