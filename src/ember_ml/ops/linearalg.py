"""Linear algebra."""

from __future__ import annotations

from ember_ml.ops.declare import primitive
from ember_ml.ops.rules import NUMERIC
from ember_ml.typing import Tensor, TensorLike

__all__: list[str] = ["matmul"]


@primitive(NUMERIC)
def matmul(x: TensorLike, y: TensorLike) -> Tensor:
    """matmul."""
    ...
