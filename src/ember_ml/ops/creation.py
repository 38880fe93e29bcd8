"""Making tensors."""

from __future__ import annotations

from ember_ml.ops.declare import derived, primitive
from ember_ml.ops.rules import CREATION
from ember_ml.ops.shape import broadcast_to
from ember_ml.ops.conversion import asarray, copy
from ember_ml.typing import DataLike, DeviceLike, DTypeLike, Numeric, ShapeLike, Tensor

__all__: list[str] = ["zeros","ones","full","arange"]


@primitive(CREATION)
def zeros(shape: ShapeLike, dtype: DTypeLike | None = None, device: DeviceLike | None = None) -> Tensor:
    """A tensor of zeros, float32 unless ``dtype`` says otherwise.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.zeros((2, 2))).tolist()
    [[0.0, 0.0], [0.0, 0.0]]
    """
    ...


@primitive(CREATION)
def ones(shape: ShapeLike, dtype: DTypeLike | None = None, device: DeviceLike | None = None) -> Tensor:
    """A tensor of ones, float32 unless ``dtype`` says otherwise.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.ones(3)).tolist()
    [1.0, 1.0, 1.0]
    """
    ...


@derived(CREATION)
def full(
    shape: ShapeLike, fill_value: DataLike, dtype: DTypeLike | None = None, device: DeviceLike | None = None
) -> Tensor:
    """A tensor with ``fill_value`` everywhere, in the dtype that :func:`array` would give it unless ``dtype`` says otherwise.

    ``fill_value`` may be a tensor, which is broadcast.

    >>> from ember_ml import ops
    >>> x = ops.full((2,), 7)
    >>> ops.to_numpy(x).tolist(), ops.dtype(x)
    ([7, 7], int64)
    """
    return copy(broadcast_to(asarray(fill_value, dtype, device), shape))


@primitive(CREATION)
def arange(
    start: Numeric,
    stop: Numeric | None = None,
    step: Numeric = 1,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
) -> Tensor:
    """The numbers from ``start`` (0 where only one bound is given) up to but without ``stop``, ``step`` apart.

    There are ``ceil((stop - start) / step)`` of them, none where that is negative, and each is ``start + i * step``, computed
    in double precision. The dtype is int64 for ints, float32 where any of the three is a float.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.arange(2, 8, 2)).tolist(), ops.to_numpy(ops.arange(0.0, 1.0, 0.5)).tolist()
    ([2, 4, 6], [0.0, 0.5])
    """
    ...
