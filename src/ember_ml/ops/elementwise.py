"""Elementwise arithmetic and mathematical functions."""

from __future__ import annotations

from ember_ml.ops.declare import primitive
from ember_ml.ops.rules import BITWISE, EQUALITY, FLOATING, NUMERIC, ORDER
from ember_ml.typing import Tensor, TensorLike


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
def matmul(x: TensorLike, y: TensorLike) -> Tensor:
    """matmul."""
    ...


@primitive(BITWISE)
def bitwise_and(x: TensorLike, y: TensorLike) -> Tensor:
    """bitwise_and."""
    ...


@primitive(BITWISE)
def bitwise_or(x: TensorLike, y: TensorLike) -> Tensor:
    """bitwise_or."""
    ...


@primitive(BITWISE)
def bitwise_xor(x: TensorLike, y: TensorLike) -> Tensor:
    """bitwise_xor."""
    ...


@primitive(BITWISE)
def bitwise_left_shift(x: TensorLike, y: TensorLike) -> Tensor:
    """bitwise_left_shift."""
    ...


@primitive(BITWISE)
def bitwise_right_shift(x: TensorLike, y: TensorLike) -> Tensor:
    """bitwise_right_shift."""
    ...


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


@primitive(BITWISE)
def bitwise_invert(x: TensorLike) -> Tensor:
    """bitwise_invert."""
    ...
