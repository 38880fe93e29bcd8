"""References of the ops that move, join, split, repeat and pick elements; all exact."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tests.reference import arrays, broadcastable, integers_below, shapes
from tests.reference.spec import spec


def _one(**limits: Any) -> Any:
    return lambda draw, dtype: {"x": draw(arrays(dtype, shapes(**limits)))}


def _with_axis(name: str = "axis", extra: int = 0, **limits: Any) -> Any:
    def draw(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
        x = draw(arrays(dtype, shapes(**{"min_dims": 1 - extra, **limits})))
        return {"x": x, name: draw(st.integers(-x.ndim - extra, x.ndim - 1 + extra))}

    return draw


def _reshape(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    x = draw(arrays(dtype))
    divisors = [d for d in range(1, x.size + 1) if x.size % d == 0]
    if x.size == 0:
        return {"x": x, "shape": draw(st.sampled_from([(0,), (0, 3), (2, 0)]))}
    d = draw(st.sampled_from(divisors))
    return {"x": x, "shape": draw(st.sampled_from([(-1,), (d, -1), (d, x.size // d), (1, d, x.size // d)]))}


spec("reshape", _reshape, lambda x, shape: np.reshape(x, shape), 0)


def _axes(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    x = draw(arrays(dtype))
    return {"x": x, "axes": draw(st.permutations(range(x.ndim)).map(tuple))}


spec("transpose", _axes, lambda x, axes: np.transpose(x, axes), 0)


def _two_axes(first: str, second: str) -> Any:
    def draw(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
        x = draw(arrays(dtype, shapes(min_dims=1)))
        axis = st.integers(-x.ndim, x.ndim - 1)
        return {"x": x, first: draw(axis), second: draw(axis)}

    return draw


spec("swapaxes", _two_axes("axis1", "axis2"), lambda x, axis1, axis2: np.swapaxes(x, axis1, axis2), 0)
spec(
    "moveaxis",
    _two_axes("source", "destination"),
    lambda x, source, destination: np.moveaxis(x, source, destination),
    0,
)
spec("expand_dims", _with_axis(extra=1), lambda x, axis: np.expand_dims(x, axis), 0)
spec("matrix_transpose", _one(min_dims=2), lambda x: np.swapaxes(x, -1, -2), 0)
spec("ravel", _one(), lambda x: np.ravel(x), 0)
spec("flatten", _one(), lambda x: x.flatten(), 0)
spec("copy", _one(), lambda x: np.copy(x), 0)
spec("fliplr", _one(min_dims=2), lambda x: np.fliplr(x), 0)
spec("flipud", _one(min_dims=1), lambda x: np.flipud(x), 0)
spec("flip", _with_axis(), lambda x, axis: np.flip(x, axis), 0)


def _squeezed(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    x = draw(arrays(dtype))
    axis = draw(st.integers(0, x.ndim))
    return {"x": np.expand_dims(x, axis), "axis": axis}


spec("squeeze", _squeezed, lambda x, axis: np.squeeze(x, axis), 0)


def _grown(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    small, big = draw(broadcastable(2))
    return {"x": draw(arrays(dtype, small)), "shape": tuple(np.broadcast_shapes(small, big))}


spec("broadcast_to", _grown, lambda x, shape: np.broadcast_to(x, shape), 0)


def _several(stacked: bool, **limits: Any) -> Any:
    def draw(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
        shape = draw(shapes(**{"min_dims": 0 if stacked else 1, **limits}))
        number = draw(st.integers(1, 3))
        axis = draw(st.integers(-len(shape) - stacked, len(shape) - 1 + stacked))
        return {"x": [draw(arrays(dtype, shape)) for _ in range(number)], "axis": axis}

    return draw


spec("concatenate", _several(False), lambda x, axis: np.concatenate(x, axis), 0)


def _appended(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    both = _several(False)(draw, dtype)
    axis = draw(st.sampled_from([both["axis"], None]))
    return {"x": both["x"][0], "values": both["x"][-1], "axis": axis}


spec("append", _appended, lambda x, values, axis: np.append(x, values, axis), 0)
spec("stack", _several(True), lambda x, axis: np.stack(x, axis), 0)
for _name in ("vstack", "hstack", "dstack", "column_stack"):

    def _joined(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
        shape = draw(shapes(min_dims=1, max_dims=2))
        return {"x": [draw(arrays(dtype, shape)) for _ in range(draw(st.integers(1, 3)))]}

    spec(_name, _joined, lambda x, name=_name: getattr(np, name)(x), 0)


def _parts(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    parts = draw(st.integers(1, 3))
    shape = draw(shapes(min_dims=1))
    axis = draw(st.integers(-len(shape), len(shape) - 1))
    grown = list(shape)
    grown[axis] *= parts
    return {"x": draw(arrays(dtype, tuple(grown))), "indices_or_sections": parts, "axis": axis}


spec("split", _parts, lambda x, indices_or_sections, axis: np.split(x, indices_or_sections, axis), 0)


def _uneven(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    x = draw(arrays(dtype, shapes(min_dims=1)))
    return {"x": x, "indices_or_sections": draw(st.integers(1, 5)), "axis": draw(st.integers(-x.ndim, x.ndim - 1))}


spec("array_split", _uneven, lambda x, indices_or_sections, axis: np.array_split(x, indices_or_sections, axis), 0)
spec("unstack", _with_axis(min_side=1), lambda x, axis: tuple(np.moveaxis(x, axis, 0)), 0)


def _tiled(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    return {"x": draw(arrays(dtype)), "reps": draw(st.lists(st.integers(0, 3), max_size=3).map(tuple))}


spec("tile", _tiled, lambda x, reps: np.tile(x, reps), 0)


def _repeated(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    x = draw(arrays(dtype, shapes(min_dims=1)))
    return {
        "x": x,
        "repeats": draw(st.integers(0, 3)),
        "axis": draw(st.one_of(st.none(), st.integers(-x.ndim, x.ndim - 1))),
    }


spec("repeat", _repeated, lambda x, repeats, axis: np.repeat(x, repeats, axis), 0)


def _rolled(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    x = draw(arrays(dtype, shapes(min_dims=1)))
    return {
        "x": x,
        "shift": draw(st.integers(-6, 6)),
        "axis": draw(st.one_of(st.none(), st.integers(-x.ndim, x.ndim - 1))),
    }


spec("roll", _rolled, lambda x, shift, axis: np.roll(x, shift, axis), 0)
spec(
    "rot90",
    lambda draw, dtype: {"x": draw(arrays(dtype, shapes(min_dims=2))), "k": draw(st.integers(-5, 5))},
    lambda x, k: np.rot90(x, k),
    0,
)


def _padded(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    x = draw(arrays(dtype, shapes(min_dims=1, min_side=1)))
    width = st.tuples(st.integers(0, 3), st.integers(0, 3))
    mode = draw(st.sampled_from(["constant", "edge", "reflect", "symmetric"]))
    return {"x": x, "pad_width": tuple(draw(width) for _ in range(x.ndim)), "mode": mode}


spec("pad", _padded, lambda x, pad_width, mode: np.pad(x, pad_width, mode=mode), 0)


def _triangle(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    return {"x": draw(arrays(dtype, shapes(min_dims=2))), "k": draw(st.integers(-5, 5))}


spec("tril", _triangle, lambda x, k: np.tril(x, k), 0)
spec("triu", _triangle, lambda x, k: np.triu(x, k), 0)
spec(
    "diag",
    lambda draw, dtype: {"x": draw(arrays(dtype, shapes(min_dims=1, max_dims=2))), "k": draw(st.integers(-3, 3))},
    lambda x, k: np.diag(x, k),
    0,
)
spec(
    "diagflat",
    lambda draw, dtype: {"x": draw(arrays(dtype, shapes(max_dims=2))), "k": draw(st.integers(-3, 3))},
    lambda x, k: np.diagflat(x, k),
    0,
)


def _taken(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    x = draw(arrays(dtype, shapes(min_dims=1, min_side=1)))
    axis = draw(st.integers(-x.ndim, x.ndim - 1))
    indices = draw(integers_below(x.shape[axis], draw(shapes(max_dims=2))))
    return {"x": x, "indices": indices, "axis": axis}


spec("take", _taken, lambda x, indices, axis: np.take(x, indices, axis), 0)


def _along_axis(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    x = draw(arrays(dtype, shapes(min_dims=1, min_side=1)))
    axis = draw(st.integers(-x.ndim, x.ndim - 1))
    shape = list(x.shape)
    shape[axis] = draw(st.integers(0, 4))
    return {"x": x, "indices": draw(integers_below(x.shape[axis], tuple(shape))), "axis": axis}


spec("take_along_axis", _along_axis, lambda x, indices, axis: np.take_along_axis(x, indices, axis), 0)


def _keyed(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    x = draw(arrays(dtype, shapes(min_side=1)))
    return {"x": x, "key": draw(keys(x.shape))}


@st.composite
def keys(draw: st.DrawFn, shape: tuple[int, ...]) -> Any:
    """NumPy's keys: basic ones, masks, and integer arrays mixed with slices."""
    sort = draw(st.sampled_from(["basic", "basic", "mask", "arrays"]))
    if sort == "basic":
        return draw(hnp.basic_indices(shape, allow_newaxis=True))
    if sort == "mask":
        return draw(hnp.arrays(np.bool_, shape))
    parts: list[Any] = []
    common = draw(shapes(max_dims=2, max_side=3))
    for side in shape:
        if draw(st.booleans()):
            parts.append(draw(integers_below(side, common)))
        else:
            parts.append(draw(st.slices(side)))
    return tuple(parts)


spec("get_item", _keyed, lambda x, key: x[key], 0)
spec("nonzero", lambda draw, dtype: {"x": draw(arrays(dtype, shapes(min_dims=1)))}, lambda x: np.nonzero(x), 0)
spec("argwhere", lambda draw, dtype: {"x": draw(arrays(dtype, shapes(min_dims=1)))}, lambda x: np.argwhere(x), 0)


def _unraveled(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    shape = draw(shapes(min_dims=1, min_side=1))
    return {"indices": draw(hnp.arrays(np.int64, (3,), elements=st.integers(0, math.prod(shape) - 1))), "shape": shape}


spec("unravel_index", _unraveled, lambda indices, shape: np.unravel_index(indices, shape), 0)


def _searched(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    x = np.sort(draw(arrays(dtype, shapes(min_dims=1, max_dims=1), finite=True)))
    return {"x": x, "y": draw(arrays(dtype, finite=True)), "side": draw(st.sampled_from(["left", "right"]))}


spec("searchsorted", _searched, lambda x, y, side: np.searchsorted(x, y, side), 0)


def _distinct(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    wanted = {name: draw(st.booleans()) for name in ("return_index", "return_inverse", "return_counts")}
    return {"x": draw(arrays(dtype, finite=True))} | wanted


spec("unique", _distinct, lambda x, **wanted: np.unique(x, **wanted), 0)
spec("unique_values", lambda draw, dtype: {"x": draw(arrays(dtype))}, lambda x: np.unique(x, equal_nan=False), 0)
