"""Distinct values, positions in sorted data, and counts."""

from __future__ import annotations

from typing import Any

from ember_ml import ops
from ember_ml.backend.common.named_results import UniqueAllResult, UniqueCountsResult, UniqueInverseResult
from ember_ml.backend.common.unique import histogram_edges
from ember_ml.dispatch.declare import derived, gradient, primitive
from ember_ml.dispatch.dtype_rules import KEEP, NUMERIC, REAL, REAL_FLOATING
from ember_ml.ops.arrays.conversion import asarray, cast
from ember_ml.ops.arrays.creation import ones_like
from ember_ml.ops.arrays.gradient_rules import helpers
from ember_ml.ops.arrays.indexing import get_item
from ember_ml.ops.arrays.properties import dtype as dtype_of
from ember_ml.ops.arrays.scatter import segment_sum
from ember_ml.ops.arrays.shape import reshape
from ember_ml.ops.elementwise.arithmetic import clip, divide, subtract
from ember_ml.ops.elementwise.comparison import equal, greater_equal, less_equal, logical_and, where
from ember_ml.ops.stats.reductions import sum
from ember_ml.typing import DataLike, IndexLike, Tensor, TensorLike

__all__: list[str] = [
    "bincount",
    "digitize",
    "histogram",
    "searchsorted",
    "unique",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
]


@primitive(KEEP.giving("own"))
def unique_values(x: TensorLike) -> Tensor:
    """The distinct elements of ``x`` in ascending order, in one dimension.

    Each NaN is distinct and comes last; -0.0 and 0.0 are equal. The shape of the result depends on the values, so it is
    not differentiable.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.unique_values([3, 1, 3])).tolist()
    [1, 3]
    """
    ...


@primitive(KEEP.giving("own"))
def unique_all(x: TensorLike) -> UniqueAllResult:
    """The distinct ``values`` of ``x``, ``indices`` of their first occurrences, ``inverse_indices`` and ``counts``.

    ``inverse_indices`` has the shape of ``x`` and rebuilds it: ``take(values, inverse_indices)``. All indices and
    counts are int64. Values come in ascending order; each NaN is distinct; -0.0 and 0.0 are equal.

    >>> from ember_ml import ops
    >>> found = ops.unique_all([3, 1, 3])
    >>> [ops.to_numpy(part).tolist() for part in found]
    [[1, 3], [1, 0], [1, 0, 1], [1, 2]]
    """
    ...


@primitive(KEEP.giving("own"))
def unique_counts(x: TensorLike) -> UniqueCountsResult:
    """The distinct ``values`` of ``x`` in ascending order, and in int64 the ``counts`` of each.

    Each NaN is distinct; -0.0 and 0.0 are equal.

    >>> from ember_ml import ops
    >>> [ops.to_numpy(part).tolist() for part in ops.unique_counts([3, 1, 3])]
    [[1, 3], [1, 2]]
    """
    ...


@primitive(KEEP.giving("own"))
def unique_inverse(x: TensorLike) -> UniqueInverseResult:
    """The distinct ``values`` of ``x`` in ascending order, and ``inverse_indices`` of its shape that rebuild it.

    Each NaN is distinct; -0.0 and 0.0 are equal.

    >>> from ember_ml import ops
    >>> [ops.to_numpy(part).tolist() for part in ops.unique_inverse([3, 1, 3])]
    [[1, 3], [1, 0, 1]]
    """
    ...


@derived(KEEP.giving("own"))
def unique(x: TensorLike, return_index: bool = False, return_inverse: bool = False, return_counts: bool = False) -> Any:
    """The distinct elements of ``x`` in ascending order; a tuple of them and of what else is asked for, as in NumPy.

    ``return_index`` adds the index of each one's first occurrence in the flattened tensor, ``return_inverse`` the
    indices, of the shape of ``x``, that rebuild it, ``return_counts`` how often each occurs; all are int64, and come in
    this order. Each NaN is distinct, other than in NumPy; -0.0 and 0.0 are equal.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.unique([3, 1, 3])).tolist()
    [1, 3]
    >>> values, counts = ops.unique([3, 1, 3], return_counts=True)
    >>> ops.to_numpy(counts).tolist()
    [1, 2]
    """
    if not (return_index or return_inverse or return_counts):
        return unique_values(x)
    values, *parts = unique_all(x)
    asked = (return_index, return_inverse, return_counts)
    return (values, *(part for part, is_asked in zip(parts, asked, strict=True) if is_asked))


@primitive(REAL.giving("int64"))
def searchsorted(x: TensorLike, y: TensorLike, side: str = "left", sorter: IndexLike | None = None) -> Tensor:
    """Where each element of ``y`` would go into the ascending 1-D tensor ``x``, in int64.

    On the left side of equal elements, or on the ``right``. ``sorter`` holds the indices that sort ``x``.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.searchsorted([1.0, 2.0, 3.0], [2.0, 9.0])).tolist()
    [1, 3]
    """
    ...


@primitive(REAL.giving("int64"))
def digitize(x: TensorLike, bins: TensorLike, right: bool = False) -> Tensor:
    """The number of the bin of each element of ``x``, in int64: 0 before the first of ``bins``, their count beyond.

    ``bins`` ascend or descend; in ascending ones an element equal to an edge belongs above it, or below it with
    ``right``. Bins that do neither raise ``ValueError``.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.digitize([0.5, 1.0, 7.0], [0.0, 1.0, 2.0])).tolist()
    [1, 2, 3]
    """
    ...


@primitive(NUMERIC.giving("own"))
def bincount(x: IndexLike, weights: TensorLike | None = None, minlength: int = 0) -> Tensor:
    """How often each of the integers 0, 1, 2, ... occurs in the 1-D tensor ``x``; or the sums of their ``weights``.

    The result reaches to the largest integer in ``x``, and has at least ``minlength`` elements. Counts are int64;
    sums of weights have the dtype of the weights. A negative integer raises ``ValueError``.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.bincount([0, 2, 2])).tolist()
    [1, 0, 2]
    """
    ...


gradient(bincount, weights=lambda g, x: ops.take(g, x, 0))


@derived(REAL_FLOATING.giving("own"))
def histogram(
    x: TensorLike,
    bins: DataLike = 10,
    range: tuple[float, float] | None = None,
    weights: DataLike | None = None,
    density: bool = False,
) -> tuple[Tensor, Tensor]:
    """How many elements of ``x`` lie in each bin, and the edges of the bins.

    ``bins`` is the number of bins of equal width over ``range``, or over the elements' own range; or the ascending
    edges. A bin holds its lower edge, the last one both. What lies outside, and NaN, is not counted. Counts are
    int64; with ``weights`` they are sums of those, with ``density`` they are scaled so that the histogram has the
    area 1. Its gradient is that of the weights; by ``x`` there is none.

    >>> from ember_ml import ops
    >>> [ops.to_numpy(part).tolist() for part in ops.histogram([1.0, 2.0, 2.0, 4.0], bins=3)]
    [[1, 2, 1], [1.0, 2.0, 3.0, 4.0]]
    """
    x = reshape(x, (-1,))
    edges = asarray(histogram_edges(x, bins, range), dtype=dtype_of(x))
    inside, place = _find_bins(x, edges)
    each = ones_like(x, dtype="int64") if weights is None else reshape(asarray(weights), (-1,))
    found = segment_sum(where(inside, each, 0), place, edges.shape[0] - 1)
    if density:
        found = divide(divide(cast(found, dtype_of(edges)), sum(found)), _widths(edges))
    return found, edges


gradient(
    histogram,
    weights=lambda g, r, x, weights, density: _weights_vjp(g[0], r, x, weights, density),
)


def _find_bins(x: Tensor, edges: Tensor) -> tuple[Tensor, Tensor]:
    """Return which elements are counted, and in which bin."""
    count = edges.shape[0] - 1
    first, last = get_item(edges, 0), get_item(edges, -1)
    place = where(equal(x, last), count - 1, subtract(searchsorted(edges, x, side="right"), 1))
    return logical_and(greater_equal(x, first), less_equal(x, last)), clip(place, 0, count - 1)


def _widths(edges: Tensor) -> Tensor:
    return subtract(get_item(edges, slice(1, None)), get_item(edges, slice(None, -1)))


def _weights_vjp(g: Tensor, r: Any, x: Tensor, weights: Any, density: bool) -> Tensor:
    result, edges = r
    inside, place = _find_bins(reshape(x, (-1,)), edges)
    if density:
        whole = sum(where(inside, reshape(weights, (-1,)), 0))
        g = divide(subtract(divide(g, _widths(edges)), sum(ops.multiply(g, result))), cast(whole, dtype_of(g)))
    each = reshape(where(inside, ops.take(g, place, 0), 0), ops.shape(weights))
    return helpers.cast_back(each, weights)
