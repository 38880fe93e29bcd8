"""Reshaping, joining, splitting, padding, flipping."""

from __future__ import annotations

from ember_ml.ops.declare import primitive
from ember_ml.ops.rules import SAME
from ember_ml.typing import ShapeLike, Tensor, TensorLike

__all__: list[str] = ["broadcast_to", "reshape"]


@primitive(SAME)
def reshape(x: TensorLike, shape: ShapeLike) -> Tensor:
    """The elements of ``x``, in their order, in another shape; one length may be -1 and is then whatever is left.

    A shape for another number of elements raises ``ValueError``, and so does -1 where there are none to count.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.reshape([1, 2, 3, 4], (2, -1))).tolist()
    [[1, 2], [3, 4]]
    """
    ...


@primitive(SAME)
def broadcast_to(x: TensorLike, shape: ShapeLike) -> Tensor:
    """``x`` repeated along new leading dimensions and those of length 1 until it has ``shape``.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.broadcast_to([1, 2], (2, 2))).tolist()
    [[1, 2], [1, 2]]
    """
    ...
