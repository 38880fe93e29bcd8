"""Making tensors."""

from __future__ import annotations

from typing import Any

from ember_ml import ops
from ember_ml.backend.common.ranges import geometric, linear, logarithmic, steps, triangle
from ember_ml.backend.selection import active
from ember_ml.core.dtypes import DEFAULT_FLOAT, as_dtype
from ember_ml.dispatch.declare import derived, gradient, primitive
from ember_ml.dispatch.dtype_rules import CREATION, KEEP
from ember_ml.ops.arrays.conversion import asarray, cast, copy
from ember_ml.ops.arrays.dtypes import isdtype, result_type
from ember_ml.ops.arrays.shape import broadcast_shapes, broadcast_to, moveaxis, reshape
from ember_ml.ops.linearalg.matrices import tril
from ember_ml.typing import DataLike, DeviceLike, DTypeLike, Numeric, ShapeLike, Tensor, TensorLike

__all__ = [
    "arange",
    "empty",
    "empty_like",
    "eye",
    "full",
    "full_like",
    "geomspace",
    "identity",
    "linspace",
    "logspace",
    "meshgrid",
    "ones",
    "ones_like",
    "tri",
    "tril_indices",
    "triu_indices",
    "zeros",
    "zeros_like",
]


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


@primitive(CREATION)
def empty(shape: ShapeLike, dtype: DTypeLike | None = None, device: DeviceLike | None = None) -> Tensor:
    """A tensor of chance values, float32 unless ``dtype`` says otherwise: only its shape can be relied on.

    >>> from ember_ml import ops
    >>> ops.shape(ops.empty((2, 3)))
    (2, 3)
    """
    ...


@derived(CREATION)
def full(
    shape: ShapeLike, fill_value: DataLike, dtype: DTypeLike | None = None, device: DeviceLike | None = None
) -> Tensor:
    """A tensor with ``fill_value`` everywhere, which may itself be a tensor and is then broadcast.

    Without ``dtype`` it has the dtype that ``array`` would give to ``fill_value``.

    >>> from ember_ml import ops
    >>> x = ops.full((2,), 7)
    >>> ops.to_numpy(x).tolist(), ops.dtype(x)
    ([7, 7], int64)
    """
    return copy(broadcast_to(asarray(fill_value, dtype, device), shape))


@derived(KEEP.giving("own"))
def zeros_like(x: TensorLike, dtype: DTypeLike | None = None, device: DeviceLike | None = None) -> Tensor:
    """A tensor of zeros with the shape, and unless told otherwise the dtype and device, of ``x``.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.zeros_like([1, 2, 3])).tolist()
    [0, 0, 0]
    """
    return zeros(x.shape, x.dtype if dtype is None else dtype, device)


gradient(zeros_like, x=None)


@derived(KEEP.giving("own"))
def ones_like(x: TensorLike, dtype: DTypeLike | None = None, device: DeviceLike | None = None) -> Tensor:
    """A tensor of ones with the shape, and unless told otherwise the dtype and device, of ``x``.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.ones_like([5, 6])).tolist()
    [1, 1]
    """
    return ones(x.shape, x.dtype if dtype is None else dtype, device)


gradient(ones_like, x=None)


@derived(KEEP.giving("own"))
def empty_like(x: TensorLike, dtype: DTypeLike | None = None, device: DeviceLike | None = None) -> Tensor:
    """A tensor of chance values with the shape, and unless told otherwise the dtype and device, of ``x``.

    >>> from ember_ml import ops
    >>> ops.shape(ops.empty_like([5.0, 6.0]))
    (2,)
    """
    return empty(x.shape, x.dtype if dtype is None else dtype, device)


gradient(empty_like, x=None)


@derived(KEEP.giving("own"))
def full_like(
    x: TensorLike, fill_value: DataLike, dtype: DTypeLike | None = None, device: DeviceLike | None = None
) -> Tensor:
    """A tensor of ``fill_value`` with the shape, and unless told otherwise the dtype and device, of ``x``.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.full_like([1.0, 2.0], 7)).tolist()
    [7.0, 7.0]
    """
    return full(x.shape, fill_value, x.dtype if dtype is None else dtype, device)


@primitive(CREATION)
def eye(
    n_rows: int,
    n_cols: int | None = None,
    k: int = 0,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
) -> Tensor:
    """A matrix with ones on the diagonal that lies ``k`` above the main one, and zeros elsewhere; square by default.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.eye(2, 3, k=1)).tolist()
    [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    ...


@derived(CREATION)
def identity(n: int, dtype: DTypeLike | None = None, device: DeviceLike | None = None) -> Tensor:
    """The identity matrix with ``n`` rows.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.identity(2)).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    return eye(n, None, 0, dtype, device)


@derived(CREATION)
def tri(
    N: int, M: int | None = None, k: int = 0, dtype: DTypeLike | None = None, device: DeviceLike | None = None
) -> Tensor:
    """A matrix of N rows and M columns (N by default) with ones on and below the diagonal ``k``, and zeros above.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.tri(2, 3)).tolist()
    [[1.0, 0.0, 0.0], [1.0, 1.0, 0.0]]
    """
    return tril(ones((N, N if M is None else M), dtype, device), k)


@derived(CREATION)
def tril_indices(n: int, k: int = 0, m: int | None = None, device: DeviceLike | None = None) -> tuple[Tensor, Tensor]:
    """The rows and the columns, int64, of the elements on and below the diagonal ``k`` of an n by m matrix.

    >>> from ember_ml import ops
    >>> rows, columns = ops.tril_indices(2)
    >>> ops.to_numpy(rows).tolist(), ops.to_numpy(columns).tolist()
    ([0, 1, 1], [0, 0, 1])
    """
    return _brought(triangle(n, k, m, upper=False), device)


@derived(CREATION)
def triu_indices(n: int, k: int = 0, m: int | None = None, device: DeviceLike | None = None) -> tuple[Tensor, Tensor]:
    """The rows and the columns, int64, of the elements on and above the diagonal ``k`` of an n by m matrix.

    >>> from ember_ml import ops
    >>> rows, columns = ops.triu_indices(3, k=1)
    >>> ops.to_numpy(rows).tolist(), ops.to_numpy(columns).tolist()
    ([0, 0, 1], [1, 2, 2])
    """
    return _brought(triangle(n, k, m, upper=True), device)


def _brought(hosts: tuple[Any, Any], device: str | None) -> tuple[Tensor, Tensor]:
    backend = active()
    return backend.from_host(hosts[0], device), backend.from_host(hosts[1], device)


@primitive(CREATION)
def arange(
    start: Numeric,
    stop: Numeric | None = None,
    step: Numeric = 1,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
) -> Tensor:
    """The numbers from ``start`` (0 where only one bound is given) up to but without ``stop``, ``step`` apart.

    There are ``ceil((stop - start) / step)`` of them, none where that is negative, and each is ``start + i * step``,
    computed in double precision. The dtype is int64 for ints, float32 where any of the three is a float.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.arange(2, 8, 2)).tolist(), ops.to_numpy(ops.arange(0.0, 1.0, 0.5)).tolist()
    ([2, 4, 6], [0.0, 0.5])
    """
    ...


@derived(CREATION)
def linspace(
    start: DataLike,
    stop: DataLike,
    num: int = 50,
    endpoint: bool = True,
    dtype: DTypeLike | None = None,
    axis: int = 0,
    device: DeviceLike | None = None,
) -> Tensor:
    """``num`` evenly spaced numbers from ``start`` to ``stop``, which is the last one unless ``endpoint`` is False.

    Numbers are computed in double precision; the dtype is float32 (complex64 of complex numbers) unless ``dtype`` says
    otherwise, and an integer dtype rounds down. Tensors are broadcast, and the numbers lie along the new ``axis``.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.linspace(0, 1, 5)).tolist()
    [0.0, 0.25, 0.5, 0.75, 1.0]
    """
    if _is_number(start) and _is_number(stop):
        return active().from_host(linear(start, stop, num, endpoint, _as_dtype_or_none(dtype)), device)
    first, last, place = _place_between_ends(start, stop, num, endpoint, device)
    return _spread(_between(first, last, place), dtype, axis)


@derived(CREATION)
def logspace(
    start: DataLike,
    stop: DataLike,
    num: int = 50,
    endpoint: bool = True,
    base: DataLike = 10.0,
    dtype: DTypeLike | None = None,
    axis: int = 0,
    device: DeviceLike | None = None,
) -> Tensor:
    """``base`` to the power of each of ``num`` evenly spaced exponents from ``start`` to ``stop``.

    The dtype and tensors as in :func:`linspace`.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.logspace(0, 2, 3)).tolist()
    [1.0, 10.0, 100.0]
    """
    from ember_ml.ops.elementwise.arithmetic import power

    if _is_number(start) and _is_number(stop) and _is_number(base):
        return active().from_host(logarithmic(start, stop, num, endpoint, base, _as_dtype_or_none(dtype)), device)
    first, last, place = _place_between_ends(start, stop, num, endpoint, device)
    return _spread(power(base, _between(first, last, place)), dtype, axis)


@derived(CREATION)
def geomspace(
    start: DataLike,
    stop: DataLike,
    num: int = 50,
    endpoint: bool = True,
    dtype: DTypeLike | None = None,
    axis: int = 0,
    device: DeviceLike | None = None,
) -> Tensor:
    """``num`` numbers from ``start`` to ``stop`` of which each is the same multiple of the one before.

    The dtype and tensors as in :func:`linspace`. A bound of 0 raises ``ValueError``; in tensors it gives NaN, as do
    bounds of different signs.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.geomspace(1, 16, 5)).tolist()
    [1.0, 2.0, 4.0, 8.0, 16.0]
    """
    from ember_ml.ops.elementwise.arithmetic import divide, multiply, power
    from ember_ml.ops.elementwise.comparison import equal, where

    if _is_number(start) and _is_number(stop):
        return active().from_host(geometric(start, stop, num, endpoint, _as_dtype_or_none(dtype)), device)
    first, last, place = _place_between_ends(start, stop, num, endpoint, device)
    values = multiply(first, power(divide(last, first), place))
    return _spread(where(equal(place, 1), last, values), dtype, axis)  # the last one without rounding


def _is_number(value: Any) -> bool:
    return type(value) is float or (not hasattr(value, "__len__") and not getattr(value, "shape", ()))


def _as_dtype_or_none(dtype: Any) -> Any:
    return None if dtype is None else as_dtype(dtype)


def _place_between_ends(start: Any, stop: Any, num: int, endpoint: bool, device: Any) -> tuple[Tensor, Tensor, Tensor]:
    """Return both ends in one floating dtype and shape, and the fraction of each element along a new first axis."""
    first, last = asarray(start, None, device), asarray(stop, None, device)
    dtype = result_type(first, last)
    if not isdtype(dtype, ("real floating", "complex floating")):
        dtype = DEFAULT_FLOAT
    shape = broadcast_shapes(first.shape, last.shape)
    place = cast(active().from_host(steps(num, endpoint), device), dtype)
    return (
        broadcast_to(cast(first, dtype), shape),
        broadcast_to(cast(last, dtype), shape),
        reshape(place, (num, *(1 for _ in shape))),
    )


def _between(first: Tensor, last: Tensor, place: Tensor) -> Tensor:
    from ember_ml.ops.elementwise.arithmetic import add, multiply, subtract

    return add(multiply(first, subtract(1, place)), multiply(last, place))  # both ends come out without rounding


def _spread(values: Tensor, dtype: Any, axis: int) -> Tensor:
    from ember_ml.ops.elementwise.arithmetic import floor

    if dtype is not None:
        values = cast(floor(values) if isdtype(dtype, "integral") else values, dtype)
    return moveaxis(values, 0, axis)


@primitive(KEEP.giving("own"))
def meshgrid(*arrays: TensorLike, indexing: str = "xy") -> tuple[Tensor, ...]:
    """The coordinates of every point of a grid: of each 1-D tensor, its values spread over the grid of all.

    With "xy" the first tensor runs along the columns and the second along the rows; with "ij" each runs along its own
    axis.

    >>> from ember_ml import ops
    >>> x, y = ops.meshgrid(ops.array([1, 2]), ops.array([3, 4, 5]))
    >>> ops.to_numpy(x).tolist(), ops.to_numpy(y).tolist()
    ([[1, 2], [1, 2], [1, 2]], [[3, 3], [4, 4], [5, 5]])
    """
    ...


gradient(meshgrid, arrays=lambda g, indexing: [_own_axis(part, place, indexing) for place, part in enumerate(g)])


def _own_axis(g: Tensor, place: int, indexing: str) -> Tensor:
    """Return the gradient of one vector of a grid: summed over the axes of the others."""
    own = {0: 1, 1: 0}.get(place, place) if indexing == "xy" and g.ndim > 1 else place
    return ops.sum(g, tuple(axis for axis in range(g.ndim) if axis != own))
