"""Gathering values into cells by index: scatter and segment ops, and the vectors that stand for classes."""

from __future__ import annotations

from typing import Any

from ember_ml import ops
from ember_ml.core.dtypes import HALVES, as_dtype, float32
from ember_ml.dispatch.declare import derived, gradient, primitive
from ember_ml.dispatch.dtype_rules import FLOATING, KEEP, NUMERIC, REAL
from ember_ml.ops.arrays.conversion import cast
from ember_ml.ops.arrays.creation import zeros_like
from ember_ml.ops.arrays.indexing import get_item, index_update, take, take_along_axis
from ember_ml.ops.arrays.properties import dtype as dtype_of
from ember_ml.ops.arrays.shape import moveaxis, reshape
from ember_ml.ops.elementwise.arithmetic import divide, subtract
from ember_ml.ops.elementwise.comparison import greater, isfinite, less, logical_and
from ember_ml.ops.elementwise.exponential import exp
from ember_ml.ops.stats.reductions import any, count_nonzero
from ember_ml.typing import DTypeLike, IndexLike, Tensor, TensorLike, ValueLike

__all__: list[str] = [
    "in_top_k",
    "multi_hot",
    "one_hot",
    "scatter",
    "scatter_add",
    "scatter_max",
    "scatter_mean",
    "scatter_min",
    "scatter_update",
    "segment_max",
    "segment_mean",
    "segment_min",
    "segment_prod",
    "segment_sum",
]


@primitive(NUMERIC)
def segment_sum(
    data: TensorLike, segment_ids: IndexLike, num_segments: int | None = None, sorted: bool = False
) -> Tensor:
    """The sums of the rows of ``data`` that have the same id: row i of the result sums the rows whose id is i.

    There are ``num_segments`` rows, or as many as the largest id asks for, and then the shape of the result depends
    on the values. Ids that nobody has give 0. A negative or too large id raises ``IndexError``. ``sorted`` says that
    the ids ascend. The dtype is that of ``data``; half precision is summed in float32.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.segment_sum([1.0, 2.0, 4.0], [0, 2, 0])).tolist()
    [5.0, 0.0, 2.0]
    """
    ...


gradient(segment_sum, data=lambda g, segment_ids: ops.take(g, segment_ids, 0))


@primitive(REAL)
def segment_max(
    data: TensorLike, segment_ids: IndexLike, num_segments: int | None = None, sorted: bool = False
) -> Tensor:
    """The largest of the rows of ``data`` that have the same id, element by element; 0 for ids that nobody has.

    A NaN makes its cell NaN. See :func:`segment_sum` for the arguments.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.segment_max([1.0, -2.0, 4.0], [0, 2, 0])).tolist()
    [4.0, 0.0, -2.0]
    """
    ...


gradient(
    segment_max,
    data=lambda g, r, data, segment_ids, num_segments, sorted: _segment_extremes(
        g, r, data, segment_ids, num_segments, sorted
    ),
)


@primitive(REAL)
def segment_min(
    data: TensorLike, segment_ids: IndexLike, num_segments: int | None = None, sorted: bool = False
) -> Tensor:
    """The smallest of the rows of ``data`` that have the same id, element by element; 0 for ids that nobody has.

    A NaN makes its cell NaN. See :func:`segment_sum` for the arguments.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.segment_min([1.0, 2.0, 4.0], [0, 2, 0])).tolist()
    [1.0, 0.0, 2.0]
    """
    ...


gradient(
    segment_min,
    data=lambda g, r, data, segment_ids, num_segments, sorted: _segment_extremes(
        g, r, data, segment_ids, num_segments, sorted
    ),
)


@primitive(FLOATING)
def segment_mean(
    data: TensorLike, segment_ids: IndexLike, num_segments: int | None = None, sorted: bool = False
) -> Tensor:
    """The means of the rows of ``data`` that have the same id; 0 for ids that nobody has.

    Integers give float32. See :func:`segment_sum` for the arguments.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.segment_mean([1.0, 2.0, 4.0], [0, 2, 0])).tolist()
    [2.5, 0.0, 2.0]
    """
    ...


gradient(
    segment_mean,
    data=lambda g, segment_ids, num_segments, sorted: ops.take(
        _per_segment(g, segment_ids, num_segments, sorted), segment_ids, 0
    ),
)


@primitive(REAL)
def segment_prod(
    data: TensorLike, segment_ids: IndexLike, num_segments: int | None = None, sorted: bool = False
) -> Tensor:
    """The products of the rows of ``data`` that have the same id; 0 for ids that nobody has, as in :func:`scatter`.

    See :func:`segment_sum` for the arguments.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.segment_prod([3.0, 2.0, 4.0], [0, 2, 0])).tolist()
    [12.0, 0.0, 2.0]
    """
    ...


gradient(
    segment_prod,
    data=lambda g, data, segment_ids, num_segments, sorted: _segment_products(
        g, data, segment_ids, num_segments, sorted
    ),
)


_BY_AGGREGATION = {
    "add": segment_sum,
    "mean": segment_mean,
    "max": segment_max,
    "min": segment_min,
    "mul": segment_prod,
}


@derived(NUMERIC.giving("own"))
def scatter(
    values: TensorLike, indices: IndexLike, dim_size: int | None = None, aggr: str = "add", axis: int = 0
) -> Tensor:
    """The values gathered into ``dim_size`` cells along ``axis``: cell ``indices[i]`` gets the i-th values.

    Values that meet in one cell are combined by ``aggr``: ``add``, ``mean``, ``max``, ``min`` or ``mul``; a cell that
    gets none is 0. ``softmax`` gathers nothing: it has the shape of ``values``, each divided among those of its cell.
    With fewer indices than values the leading values are used (``softmax`` gives 0 for the rest); more raise
    ``ValueError``. Without ``dim_size`` there are as many cells as the largest index asks for. A negative or too
    large index raises ``IndexError``. Integers keep their dtype, but for ``mean`` and ``softmax``, which give
    float32.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.scatter([1.0, 2.0, 4.0], [0, 2, 0], dim_size=4)).tolist()
    [5.0, 0.0, 2.0, 0.0]
    """
    ndim = len(values.shape)
    if ndim == 0:
        raise ValueError("the values of a scatter need at least one dimension")
    if not -ndim <= axis < ndim:
        raise IndexError(f"axis {axis} is out of bounds for {ndim} dimensions")
    if len(indices.shape) != 1:
        raise ValueError(f"the indices of a scatter have one dimension, not the shape {tuple(indices.shape)}")
    rows = moveaxis(values, axis, 0)
    if indices.shape[0] > rows.shape[0]:
        raise ValueError(f"there are {indices.shape[0]} indices for {rows.shape[0]} values along axis {axis}")
    used = get_item(rows, slice(indices.shape[0]))
    if aggr == "softmax":
        shares = _softmax(used, indices, dim_size)
        if indices.shape[0] < rows.shape[0]:
            whole = zeros_like(rows, dtype=dtype_of(shares))
            shares = index_update(whole, slice(indices.shape[0]), shares)
        return moveaxis(shares, 0, axis)
    if aggr not in _BY_AGGREGATION:
        raise ValueError(f"aggr is one of {', '.join(_BY_AGGREGATION)}, softmax; not {aggr!r}")
    return moveaxis(_BY_AGGREGATION[aggr](used, indices, dim_size), 0, axis)


def _softmax(rows: Tensor, indices: Tensor, dim_size: int | None) -> Tensor:
    own = dtype_of(rows)
    wide = cast(rows, float32) if own in HALVES or own.kind in ("int", "uint") else rows
    largest = take(segment_max(wide, indices, dim_size), indices, axis=0)
    powers = exp(subtract(wide, largest))
    shares = divide(powers, take(segment_sum(powers, indices, dim_size), indices, axis=0))
    return cast(shares, own) if own in HALVES else shares


@derived(NUMERIC)
def scatter_add(values: TensorLike, indices: IndexLike, dim_size: int | None = None, axis: int = 0) -> Tensor:
    """The sums of the values that go into each cell; :func:`scatter` with ``aggr="add"``.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.scatter_add([1.0, 2.0, 4.0], [0, 1, 0])).tolist()
    [5.0, 2.0]
    """
    return scatter(values, indices, dim_size, "add", axis)


@derived(REAL)
def scatter_max(values: TensorLike, indices: IndexLike, dim_size: int | None = None, axis: int = 0) -> Tensor:
    """The largest of the values that go into each cell, 0 where none do; :func:`scatter` with ``aggr="max"``.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.scatter_max([1.0, 2.0, 4.0], [0, 1, 0])).tolist()
    [4.0, 2.0]
    """
    return scatter(values, indices, dim_size, "max", axis)


@derived(REAL)
def scatter_min(values: TensorLike, indices: IndexLike, dim_size: int | None = None, axis: int = 0) -> Tensor:
    """The smallest of the values that go into each cell, 0 where none do; :func:`scatter` with ``aggr="min"``.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.scatter_min([1.0, 2.0, 4.0], [0, 1, 0])).tolist()
    [1.0, 2.0]
    """
    return scatter(values, indices, dim_size, "min", axis)


@derived(FLOATING)
def scatter_mean(values: TensorLike, indices: IndexLike, dim_size: int | None = None, axis: int = 0) -> Tensor:
    """The means of the values that go into each cell, 0 where none do; :func:`scatter` with ``aggr="mean"``.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.scatter_mean([1.0, 2.0, 4.0], [0, 1, 0])).tolist()
    [2.5, 2.0]
    """
    return scatter(values, indices, dim_size, "mean", axis)


@derived(KEEP)
def scatter_update(x: TensorLike, indices: IndexLike, updates: ValueLike) -> Tensor:
    """A copy of ``x`` in which the places that ``indices`` name are ``updates``; the last update of a place stays.

    The last dimension of ``indices`` holds the coordinates of one place: of an element, or of a whole part where
    there are fewer coordinates than dimensions. The result has the dtype of ``x``.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.scatter_update([[1.0, 2.0], [3.0, 4.0]], [[0, 1], [1, 0]], [8.0, 9.0])).tolist()
    [[1.0, 8.0], [9.0, 4.0]]
    """
    if not indices.shape or indices.shape[-1] > len(x.shape):
        raise ValueError(
            f"the last dimension of the indices holds at most {len(x.shape)} coordinates, not {tuple(indices.shape)}"
        )
    key = tuple(get_item(indices, (..., number)) for number in range(indices.shape[-1]))
    return index_update(x, key, updates)


@primitive(KEEP.giving("own"))
def one_hot(x: IndexLike, num_classes: int, axis: int = -1, dtype: DTypeLike | None = None) -> Tensor:
    """A vector along a new ``axis`` for each integer in ``x``: 1 at that place, 0 elsewhere.

    float32 unless ``dtype`` says otherwise. An integer that is no class, such as -1, gives zeros.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.one_hot([2, 0], 3)).tolist()
    [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
    """
    ...


@derived(KEEP.giving("own"))
def multi_hot(x: IndexLike, num_classes: int, axis: int = -1, dtype: DTypeLike | None = None) -> Tensor:
    """A vector along ``axis`` for each row of ``x``: 1 at the places that the row names, 0 elsewhere.

    The rows are the last dimension of ``x``. float32 unless ``dtype`` says otherwise. An integer that is no class
    counts for nothing.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.multi_hot([[2, 0], [1, 1]], 3)).tolist()
    [[1.0, 0.0, 1.0], [0.0, 1.0, 0.0]]
    """
    if not x.shape:
        raise ValueError("multi_hot needs rows of integers; one_hot takes a single one")
    named = any(one_hot(x, num_classes, -1, "bool"), axis=-2)
    return moveaxis(cast(named, float32 if dtype is None else as_dtype(dtype)), -1, axis)


@derived(REAL.giving("bool"))
def in_top_k(targets: IndexLike, predictions: TensorLike, k: int) -> Tensor:
    """Whether the prediction of each target class is among the ``k`` largest of its row.

    Equal predictions share a place, so that more than ``k`` classes may be among them. A prediction that is not
    finite is not. A target that is no class raises ``IndexError``.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.in_top_k([1, 0], [[0.1, 0.7, 0.2], [0.1, 0.7, 0.2]], 2)).tolist()
    [True, False]
    """
    own = take_along_axis(predictions, reshape(targets, (*targets.shape, 1)), axis=-1)
    better = count_nonzero(greater(predictions, own), axis=-1)
    return logical_and(less(better, k), isfinite(reshape(own, tuple(targets.shape))))


def _per_segment(g: Tensor, ids: Any, number: int | None, is_sorted: bool) -> Tensor:
    """Return the gradient of each segment divided by the number of its elements."""
    ones = ops.ones((ops.size(ids),), as_dtype(g.dtype))
    sizes = ops.maximum(segment_sum(ones, ids, number, is_sorted), 1.0)
    return ops.divide(g, ops.reshape(sizes, (-1, *(1 for _ in g.shape[1:]))))


def _segment_extremes(g: Tensor, r: Tensor, data: Tensor, ids: Any, number: int | None, is_sorted: bool) -> Tensor:
    is_it = ops.cast(ops.equal(data, ops.take(r, ids, 0)), data.dtype)
    ties = segment_sum(is_it, ids, number, is_sorted)
    return ops.multiply(is_it, ops.take(ops.divide_no_nan(g, ties), ids, 0))


def _segment_products(g: Tensor, data: Tensor, ids: Any, number: int | None, is_sorted: bool) -> Tensor:
    """Return the gradient of each element: the product of the others of its segment, right where some are zero."""
    is_zero = ops.equal(data, 0)
    others = ops.where(is_zero, 1, data)
    zeros = ops.take(segment_sum(ops.cast(is_zero, data.dtype), ids, number, is_sorted), ids, 0)
    product = ops.take(segment_prod(others, ids, number, is_sorted), ids, 0)
    rest = ops.divide(product, others)
    is_only_zero = ops.logical_and(is_zero, ops.equal(zeros, 1))
    counted = ops.where(ops.logical_or(ops.equal(zeros, 0), is_only_zero), rest, 0)
    return ops.multiply(ops.take(g, ids, 0), counted)
