"""Bitwise ops."""

from __future__ import annotations

from ember_ml.ops.declare import primitive
from ember_ml.ops.rules import BITWISE
from ember_ml.typing import Tensor, TensorLike

__all__: list[str] = ["bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift", "bitwise_invert"]


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


@primitive(BITWISE)
def bitwise_invert(x: TensorLike) -> Tensor:
    """bitwise_invert."""
    ...
