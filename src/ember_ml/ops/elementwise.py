"""Arithmetic and mathematical functions, element by element."""

from __future__ import annotations

from ember_ml.ops.declare import primitive
from ember_ml.ops.rules import FLOATING, NUMERIC
from ember_ml.typing import Tensor, TensorLike

__all__: list[str] = ["add", "subtract", "multiply", "divide", "sin", "floor_divide", "mod", "power", "negative", "positive", "abs"]


@primitive(NUMERIC)
def add(x: TensorLike, y: TensorLike) -> Tensor:
    """``x + y``."""
    ...


@primitive(NUMERIC)
def subtract(x: TensorLike, y: TensorLike) -> Tensor:
    """``x - y``."""
    ...


@primitive(NUMERIC)
def multiply(x: TensorLike, y: TensorLike) -> Tensor:
    """``x * y``."""
    ...


@primitive(FLOATING, "true_divide")
def divide(x: TensorLike, y: TensorLike) -> Tensor:
    """``x / y``."""
    ...


@primitive(FLOATING)
def sin(x: TensorLike) -> Tensor:
    """Sine."""
    ...


@primitive(NUMERIC)
def floor_divide(x: TensorLike, y: TensorLike) -> Tensor:
    """floor_divide."""
    ...


@primitive(NUMERIC)
def mod(x: TensorLike, y: TensorLike) -> Tensor:
    """mod."""
    ...


@primitive(NUMERIC)
def power(x: TensorLike, y: TensorLike) -> Tensor:
    """power."""
    ...


@primitive(NUMERIC)
def negative(x: TensorLike) -> Tensor:
    """negative."""
    ...


@primitive(NUMERIC)
def positive(x: TensorLike) -> Tensor:
    """positive."""
    ...


@primitive(NUMERIC)
def abs(x: TensorLike) -> Tensor:
    """abs."""
    ...
