"""References of indexing, of scatter and segment ops, and of the ops that count: loops and NumPy's own functions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tests.reference import array_of, arrays, integers_below, shapes
from tests.reference.spec import spec

__all__ = ["mixed_keys", "numpy_item", "numpy_update", "values_for"]


@st.composite
def mixed_keys(draw: st.DrawFn, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """Keys of every sort at once: integers, slices either way, None, '...', masks of any rank, index arrays.

    Some are out of range, or of shapes that do not fit.
    """
    wide = draw(st.sampled_from([(), (2,), (3, 1)]))
    items: list[Any] = []
    axis = 0
    while axis < len(shape) and draw(st.integers(0, 9)):
        size = shape[axis]
        sort = draw(st.sampled_from(["int", "slice", "slice", "array", "array", "mask", "none"]))
        if sort == "int":
            slack = draw(st.integers(0, 19)) == 0
            items.append(draw(st.integers(-size - slack, max(size - 1 + slack, -size))))
        elif sort == "slice":
            bound = st.none() | st.integers(-size - 2, size + 2)
            items.append(slice(draw(bound), draw(bound), draw(st.sampled_from([None, 1, 2, -1, -2, 7, -7]))))
        elif sort == "array":
            own = draw(st.sampled_from([wide, wide, (1,), ()]))
            kind = draw(st.sampled_from([np.int64, np.int32, np.int8]))
            slack = draw(st.integers(0, 19)) == 0
            elements = st.integers(-size - slack, max(size - 1 + slack, -size))
            items.append(draw(hnp.arrays(kind, own if size else (0,), elements=elements)))
        elif sort == "mask":
            rank = draw(st.integers(0, len(shape) - axis))
            items.append(draw(hnp.arrays(np.bool_, shape[axis : axis + rank])))
            axis += rank - 1
        else:
            items.append(None)
            axis -= 1
        axis += 1
    if draw(st.booleans()):
        items.insert(draw(st.integers(0, len(items))), Ellipsis)
    return tuple(items)


def numpy_item(x: np.ndarray, key: Any) -> Any:
    """What NumPy selects, or the class of what it raises."""
    try:
        return np.asarray(x[key])
    except (IndexError, ValueError) as error:
        return type(error)


def numpy_update(x: np.ndarray, key: Any, values: Any) -> np.ndarray:
    """``x`` with ``values`` stored; NumPy itself refuses leading ones of values for single elements and masks."""
    values = np.asarray(values)
    while values.ndim and values.shape[0] == 1:
        values = values[0, ...]
    result = x.copy()
    result[key] = values
    return result


@st.composite
def values_for(draw: st.DrawFn, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Values that broadcast to a shape, with leading ones at times."""
    own = [1 if draw(st.integers(0, 3)) == 0 else size for size in shape[draw(st.integers(0, len(shape))) :]]
    return draw(arrays(dtype, (*[1] * draw(st.integers(0, 1)), *own), finite=True))


def _updated(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    x = draw(arrays(dtype, shapes(min_side=1)))
    key = draw(hnp.basic_indices(x.shape, allow_newaxis=True) | hnp.arrays(np.bool_, x.shape))
    return {"x": x, "key": key, "values": draw(values_for(np.asarray(x[key]).shape, dtype))}


spec("index_update", _updated, numpy_update, 0)


def _put(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    x = draw(arrays(dtype, shapes(min_dims=1, min_side=1)))
    axis = draw(st.integers(-x.ndim, x.ndim - 1))
    shape = list(x.shape)
    shape[axis] = draw(st.integers(0, 1))  # one place in each row, so that no place is named twice
    indices = draw(integers_below(x.shape[axis], tuple(shape)))
    return {"x": x, "indices": indices, "values": draw(arrays(dtype, tuple(shape))), "axis": axis}


def _put_along(x: np.ndarray, indices: np.ndarray, values: np.ndarray, axis: int) -> np.ndarray:
    result = x.copy()
    np.put_along_axis(result, indices, values, axis)
    return result


spec("put_along_axis", _put, _put_along, 0)


def _gathered(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    x = draw(arrays(dtype, shapes(min_dims=1, min_side=1)))
    axis = draw(st.integers(-x.ndim, x.ndim - 1))
    shape = [draw(st.integers(0, size)) for size in x.shape]
    shape[axis] = draw(st.integers(0, 5))
    return {"x": x, "axis": axis, "indices": draw(integers_below(x.shape[axis], tuple(shape)))}


def _gather(x: np.ndarray, axis: int, indices: np.ndarray) -> np.ndarray:
    result = np.empty(indices.shape, x.dtype)
    for place in np.ndindex(*indices.shape):
        source = list(place)
        source[axis] = indices[place]
        result[place] = x[tuple(source)]
    return result


spec("gather", _gathered, _gather, 0)


def _boxed(draw: st.DrawFn, dtype: str) -> tuple[np.ndarray, tuple[int, ...], tuple[int, ...]]:
    x = draw(arrays(dtype, shapes(min_dims=1)))
    start = tuple(draw(st.integers(0, size)) for size in x.shape)
    sizes = tuple(draw(st.integers(0, size - first)) for size, first in zip(x.shape, start, strict=True))
    return x, start, sizes


def _slice(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    x, start, sizes = _boxed(draw, dtype)
    return {"x": x, "start_indices": start, "shape": sizes}


def _slice_update(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    x, start, sizes = _boxed(draw, dtype)
    return {"x": x, "start_indices": start, "updates": draw(arrays(dtype, sizes))}


def _box(start: tuple[int, ...], sizes: tuple[int, ...]) -> tuple[slice, ...]:
    return tuple(slice(first, first + size) for first, size in zip(start, sizes, strict=True))


spec("slice", _slice, lambda x, start_indices, shape: x[_box(start_indices, shape)], 0)
spec(
    "slice_update",
    _slice_update,
    lambda x, start_indices, updates: numpy_update(x, _box(start_indices, updates.shape), updates),
    0,
)


def _raveled(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    dims = draw(shapes(min_dims=1, min_side=1))
    each = [draw(hnp.arrays(np.int64, (3,), elements=st.integers(0, size - 1))) for size in dims]
    return {"multi_index": each, "dims": dims}


spec("ravel_multi_index", _raveled, lambda multi_index, dims: np.ravel_multi_index(tuple(multi_index), dims), 0)


def _scattered_update(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    x = draw(arrays(dtype, shapes(min_dims=1, min_side=1)))
    depth = draw(st.integers(1, x.ndim))
    cells = math.prod(x.shape[:depth])
    flat = draw(st.lists(st.integers(0, cells - 1), unique=True, max_size=4))
    indices = np.stack(np.unravel_index(np.array(flat, dtype=np.int64), x.shape[:depth]), axis=-1)
    return {"x": x, "indices": indices, "updates": draw(arrays(dtype, (len(flat), *x.shape[depth:])))}


def _scatter_update(x: np.ndarray, indices: np.ndarray, updates: np.ndarray) -> np.ndarray:
    result = x.copy()
    for place, update in zip(indices.tolist(), updates, strict=True):
        result[tuple(place)] = update
    return result


spec("scatter_update", _scattered_update, _scatter_update, 0)


# Values that meet in a cell, one cell after the other.


def _segments(low: float | None = None, high: float | None = None, finite: bool = True) -> Any:
    def draw(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
        data = draw(arrays(dtype, shapes(min_dims=1, max_side=6), finite=finite, low=low, high=high))
        cells = draw(st.integers(1, 5))
        ids = draw(hnp.arrays(np.int64, data.shape[:1], elements=st.integers(0, cells - 1)))
        return {"data": data, "segment_ids": ids, "num_segments": draw(st.sampled_from([cells, cells + 2, None]))}

    return draw


def _by_cell(reduce: Callable[..., Any]) -> Callable[..., np.ndarray]:
    def reference(data: np.ndarray, segment_ids: np.ndarray, num_segments: int | None) -> np.ndarray:
        count = int(segment_ids.max(initial=-1)) + 1 if num_segments is None else num_segments
        data = data if data.dtype.kind in "fc" or reduce is not np.mean else data.astype(np.longdouble)
        result = np.zeros((count, *data.shape[1:]), data.dtype)
        for cell in set(segment_ids.tolist()):
            result[cell] = reduce(data[segment_ids == cell], axis=0).astype(data.dtype)
        return result

    return reference


def _magnitudes(data: np.ndarray, segment_ids: np.ndarray, num_segments: int | None) -> np.ndarray:
    return _by_cell(np.sum)(np.abs(data.astype(np.clongdouble)), segment_ids, num_segments)


# sums of the largest numbers overflow or not according to the order of the terms, which the contract leaves open
spec("segment_sum", _segments(-1e4, 1e4), _by_cell(np.sum), 8, _magnitudes)
spec("segment_mean", _segments(-1e4, 1e4), _by_cell(np.mean), 8, _magnitudes)
spec("segment_max", _segments(finite=False), _by_cell(np.max), 0)
spec("segment_min", _segments(finite=False), _by_cell(np.min), 0)
spec("segment_prod", _segments(-4.0, 4.0), _by_cell(np.prod), 8)


def _scattered(*aggregations: str, low: float | None = None, high: float | None = None) -> Any:
    def draw(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
        values = draw(arrays(dtype, shapes(min_dims=1, max_side=6), finite=True, low=low, high=high))
        axis = draw(st.integers(-values.ndim, values.ndim - 1))
        cells = draw(st.integers(1, 5))
        used = draw(st.integers(0, values.shape[axis]))
        indices = draw(hnp.arrays(np.int64, (used,), elements=st.integers(0, cells - 1)))
        size = draw(st.sampled_from([cells, cells + 2, None]))
        found = {"values": values, "indices": indices, "dim_size": size, "axis": axis}
        if not aggregations:
            return found
        is_ordered = not dtype.startswith("complex")  # products of complex numbers are refused, as their maxima are
        return {**found, "aggr": draw(st.sampled_from(aggregations if is_ordered else ["add", "mean"]))}

    return draw


_REDUCTIONS = {"add": np.sum, "mean": np.mean, "max": np.max, "min": np.min, "mul": np.prod}


def _scatter(values: np.ndarray, indices: np.ndarray, dim_size: int | None, axis: int, aggr: str) -> np.ndarray:
    rows = np.moveaxis(values, axis, 0)
    used = rows[: len(indices)]
    if aggr == "softmax":
        shares = np.zeros(rows.shape, np.longdouble)
        for cell in set(indices.tolist()):
            powers = np.exp(used[indices == cell].astype(np.longdouble))
            shares[: len(indices)][indices == cell] = powers / powers.sum(axis=0)
        return np.moveaxis(shares, 0, axis)
    return np.moveaxis(_by_cell(_REDUCTIONS[aggr])(used, indices, dim_size), 0, axis)


def _scatter_scale(values: np.ndarray, indices: np.ndarray, dim_size: int | None, axis: int, aggr: str = "add") -> Any:
    if aggr in ("add", "mean"):
        return _scatter(np.abs(values.astype(np.clongdouble)), indices, dim_size, axis, "add")
    return np.abs(_scatter(values, indices, dim_size, axis, aggr))


spec("scatter", _scattered("add", "mean", "mul", low=-4.0, high=4.0), _scatter, 8, _scatter_scale)
for _name in ("add", "max", "min", "mean"):
    spec(
        f"scatter_{_name}",
        _scattered(low=-100.0, high=100.0),
        lambda values, indices, dim_size, axis, _name=_name: _scatter(values, indices, dim_size, axis, _name),
        8,
        lambda values, indices, dim_size, axis, _name=_name: _scatter_scale(values, indices, dim_size, axis, _name),
    )


# Distinct values, bins and classes.


def _first_seen(x: np.ndarray) -> tuple[np.ndarray, ...]:
    """The parts of unique_all, by looking for each value in turn."""
    flat = x.ravel()
    order = sorted(
        range(flat.size), key=lambda place: (bool(np.isnan(flat[place])), 0 if np.isnan(flat[place]) else flat[place])
    )
    first: list[int] = []
    inverse = np.zeros(flat.size, np.int64)
    for place in order:
        if not first or flat[first[-1]] != flat[place]:  # NaN differs from all
            first.append(place)
        inverse[place] = len(first) - 1
    counts = np.bincount(inverse, minlength=len(first)) if flat.size else np.zeros(0, np.int64)
    indices = np.array(first, dtype=np.int64)
    return flat[indices], indices, inverse.reshape(x.shape), counts


def _plain(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    if dtype.startswith("complex"):  # whose order is NumPy's own; distinct real parts fix it
        return {"x": draw(arrays("int8", shapes(max_side=6))).astype(dtype)}
    return {"x": draw(arrays(dtype, shapes(max_side=6)))}


def _real_parts(x: np.ndarray) -> tuple[np.ndarray, ...]:
    found = _first_seen(x.real if x.dtype.kind == "c" else x)
    return found[0].astype(x.dtype), *found[1:]


spec("unique_all", _plain, _real_parts, 0)
spec("unique_counts", _plain, lambda x: _real_parts(x)[::3], 0)
spec("unique_inverse", _plain, lambda x: _real_parts(x)[::2], 0)


def _binned(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    bins = np.sort(draw(arrays(dtype, shapes(min_dims=1, max_dims=1), finite=True)))
    bins = bins[::-1] if draw(st.booleans()) else bins
    return {"x": draw(arrays(dtype, finite=True)), "bins": bins, "right": draw(st.booleans())}


def _digitize(x: np.ndarray, bins: np.ndarray, right: bool) -> np.ndarray:
    if x.dtype.kind == "f":  # NumPy does not digitize long doubles, and these values are doubles
        x, bins = x.astype(np.float64), bins.astype(np.float64)
    return np.digitize(x, bins, right)


spec("digitize", _binned, _digitize, 0)


def _counted(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    x = draw(hnp.arrays(np.int64, draw(st.integers(0, 6)), elements=st.integers(0, 5)))
    weights = draw(arrays(dtype, x.shape, finite=True, low=-1e4, high=1e4))
    return {"x": x, "weights": weights, "minlength": draw(st.integers(0, 8))}


def _bincount(x: np.ndarray, weights: np.ndarray, minlength: int) -> np.ndarray:
    return _by_cell(np.sum)(weights, x, max(int(x.max(initial=-1)) + 1, minlength))


spec(
    "bincount",
    _counted,
    _bincount,
    8,
    lambda x, weights, minlength: _bincount(x, np.abs(weights).astype(np.longdouble), minlength),
)


def _histogram(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    # quarters between -8 and 8 lie exactly on edges of eight or sixteen bins, or clearly off them
    x = draw(hnp.arrays(np.int8, draw(shapes(max_side=6)), elements=st.integers(-32, 32)))
    whole = dtype.startswith(("int", "uint"))
    data = (np.abs(x) if dtype.startswith("uint") else x).astype(dtype) if whole else array_of(dtype, x / 4)
    return {"x": data, "bins": draw(st.sampled_from([8, 16])), "range": (-8.0, 8.0)}


spec("histogram", _histogram, lambda x, bins, range: np.histogram(x, bins, range), 1)


def _classes(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    x = draw(hnp.arrays(np.int64, draw(shapes(max_dims=2)), elements=st.integers(-2, 5)))
    return {
        "x": x,
        "num_classes": draw(st.integers(0, 5)),
        "axis": draw(st.integers(-x.ndim - 1, x.ndim)),
        "dtype": dtype,
    }


def _one_hot(x: np.ndarray, num_classes: int, axis: int, dtype: str) -> np.ndarray:
    result = np.zeros((*x.shape, num_classes))
    for place in np.ndindex(*x.shape):
        if 0 <= x[place] < num_classes:
            result[(*place, x[place])] = 1
    return np.moveaxis(result, -1, axis)


spec("one_hot", _classes, _one_hot, 0)


def _rows_of_classes(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    x = draw(hnp.arrays(np.int64, draw(shapes(min_dims=1, max_dims=2)), elements=st.integers(-2, 5)))
    return {"x": x, "num_classes": draw(st.integers(1, 5)), "axis": -1, "dtype": dtype}


def _multi_hot(x: np.ndarray, num_classes: int, axis: int, dtype: str) -> np.ndarray:
    hot = [
        [float(number in row) for number in range(num_classes)]
        for row in x.reshape(math.prod(x.shape[:-1]), x.shape[-1]).tolist()
    ]
    return np.array(hot).reshape(*x.shape[:-1], num_classes)


spec("multi_hot", _rows_of_classes, _multi_hot, 0)


def _predicted(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    rows, classes = draw(st.integers(0, 4)), draw(st.integers(1, 5))
    return {
        "targets": draw(hnp.arrays(np.int64, (rows,), elements=st.integers(0, classes - 1))),
        "predictions": draw(arrays(dtype, (rows, classes))),
        "k": draw(st.integers(0, 6)),
    }


def _in_top_k(targets: np.ndarray, predictions: np.ndarray, k: int) -> np.ndarray:
    own = [row[target] for target, row in zip(targets.tolist(), predictions, strict=True)]
    return np.array(
        [
            bool(np.isfinite(value)) and sum(other > value for other in row) < k
            for value, row in zip(own, predictions, strict=True)
        ],
        dtype=bool,
    )


spec("in_top_k", _predicted, _in_top_k, 0)
