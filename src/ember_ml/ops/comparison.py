"""Comparison and logic."""

from __future__ import annotations

from ember_ml.ops.declare import primitive
from ember_ml.ops.rules import EQUALITY, ORDER
from ember_ml.typing import Tensor, TensorLike

__all__: list[str] = ["equal", "not_equal", "less", "less_equal", "greater", "greater_equal"]


@primitive(EQUALITY)
def equal(x: TensorLike, y: TensorLike) -> Tensor:
    """equal."""
    ...


@primitive(EQUALITY)
def not_equal(x: TensorLike, y: TensorLike) -> Tensor:
    """not_equal."""
    ...


@primitive(ORDER)
def less(x: TensorLike, y: TensorLike) -> Tensor:
    """less."""
    ...


@primitive(ORDER)
def less_equal(x: TensorLike, y: TensorLike) -> Tensor:
    """less_equal."""
    ...


@primitive(ORDER)
def greater(x: TensorLike, y: TensorLike) -> Tensor:
    """greater."""
    ...


@primitive(ORDER)
def greater_equal(x: TensorLike, y: TensorLike) -> Tensor:
    """greater_equal."""
    ...
