"""Matrices made of tensors: triangles, diagonals, powers."""

from __future__ import annotations

from ember_ml import ops
from ember_ml.backend.selection import active
from ember_ml.dispatch.declare import derived, gradient, primitive
from ember_ml.dispatch.dtype_rules import NUMERIC, SAME
from ember_ml.ops.arrays.conversion import cast
from ember_ml.ops.arrays.gradient_rules import helpers
from ember_ml.ops.arrays.shape import ravel, reshape
from ember_ml.typing import Tensor, TensorLike

__all__ = ["diag", "diagflat", "tril", "triu", "vander"]


@primitive(SAME)
def tril(x: TensorLike, k: int = 0) -> Tensor:
    """``x`` with zeros above the diagonal ``k`` of its last two axes.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.tril([[1, 2], [3, 4]])).tolist()
    [[1, 0], [3, 4]]
    """
    ...


gradient(tril, x=lambda g, k: tril(g, k))


@primitive(SAME)
def triu(x: TensorLike, k: int = 0) -> Tensor:
    """``x`` with zeros below the diagonal ``k`` of its last two axes.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.triu([[1, 2], [3, 4]])).tolist()
    [[1, 2], [0, 4]]
    """
    ...


gradient(triu, x=lambda g, k: triu(g, k))


@primitive(SAME)
def diag(x: TensorLike, k: int = 0) -> Tensor:
    """Of a vector, the matrix that has it as diagonal ``k`` and zeros elsewhere; of a matrix, its diagonal ``k``.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.diag([1, 2])).tolist(), ops.to_numpy(ops.diag([[1, 2], [3, 4]])).tolist()
    ([[1, 0], [0, 2]], [1, 4])
    """
    ...


gradient(
    diag,
    x=lambda g, _x, k: (
        ops.diagonal(g, k) if _x.ndim == 1 else helpers.selection_vjp(g, _x, lambda places: diag(places, k))
    ),
)


@derived(SAME)
def diagflat(x: TensorLike, k: int = 0) -> Tensor:
    """The matrix that has all elements of ``x``, in their order, as diagonal ``k`` and zeros elsewhere.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.diagflat([[1], [2]])).tolist()
    [[1, 0], [0, 2]]
    """
    return diag(ravel(x), k)


@derived(NUMERIC)
def vander(x: TensorLike, N: int | None = None, increasing: bool = False) -> Tensor:
    """The matrix whose N columns (as many as rows by default) are the powers of the vector ``x``, the highest first.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.vander([1, 2, 3])).tolist()
    [[1, 1, 1], [4, 2, 1], [9, 3, 1]]
    """
    from ember_ml.ops.arrays.creation import arange
    from ember_ml.ops.elementwise.arithmetic import power

    if len(x.shape) != 1:
        raise ValueError("ops.vander takes a vector")
    count = x.shape[0] if N is None else N
    first, stop, step = (0, count, 1) if increasing else (count - 1, -1, -1)
    exponents = arange(first, stop, step, None, active().device_of(x))
    return power(reshape(x, (x.shape[0], 1)), cast(exponents, x.dtype))
