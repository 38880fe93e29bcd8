"""Bitwise logic and shifts of integers."""

from __future__ import annotations

from ember_ml.dispatch.declare import primitive
from ember_ml.dispatch.dtype_rules import BITWISE, INTEGER
from ember_ml.typing import Tensor, TensorLike

__all__: list[str] = [
    "bitwise_and",
    "bitwise_invert",
    "bitwise_left_shift",
    "bitwise_not",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
]


@primitive(BITWISE)
def bitwise_and(x: TensorLike, y: TensorLike) -> Tensor:
    """The bits that both have; of bools, whether both are true.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.bitwise_and([6, 3], 2)).tolist()
    [2, 2]
    """
    ...


@primitive(BITWISE)
def bitwise_or(x: TensorLike, y: TensorLike) -> Tensor:
    """The bits that either has; of bools, whether either is true.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.bitwise_or([4, 3], 2)).tolist()
    [6, 3]
    """
    ...


@primitive(BITWISE)
def bitwise_xor(x: TensorLike, y: TensorLike) -> Tensor:
    """The bits that exactly one of both has; of bools, whether they differ.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.bitwise_xor([6, 3], 2)).tolist()
    [4, 1]
    """
    ...


@primitive(BITWISE, "bitwise_not")
def bitwise_invert(x: TensorLike) -> Tensor:
    """All bits inverted; of bools, the opposite.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.bitwise_invert([0, 5])).tolist()
    [-1, -6]
    """
    ...


bitwise_not = bitwise_invert


@primitive(INTEGER)
def bitwise_left_shift(x: TensorLike, y: TensorLike) -> Tensor:
    """The bits of ``x`` moved up by ``y`` places; 0 where ``y`` is negative or the whole width.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.bitwise_left_shift([1, 3], [4, 64])).tolist()
    [16, 0]
    """
    ...


@primitive(INTEGER)
def bitwise_right_shift(x: TensorLike, y: TensorLike) -> Tensor:
    """The bits of ``x`` moved down by ``y`` places, the sign repeated.

    Where ``y`` is negative or the whole width, only the sign is left: 0 or -1.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.bitwise_right_shift([16, -8], [2, 64])).tolist()
    [4, -1]
    """
    ...
