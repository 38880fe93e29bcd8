"""References of the ops that make tensors, bring them in and change their dtype."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
from hypothesis import strategies as st

from tests.reference import FLOATS, arrays, broadcastable, numpy_dtype, shapes
from tests.reference.spec import law, spec

_EVERYWHERE = (*FLOATS, "complex64", "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


def _shape(draw: st.DrawFn) -> Any:
    return draw(st.one_of(shapes(), st.integers(0, 5)))


def _typed(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    return {"shape": _shape(draw), "dtype": dtype}


def _like(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    return {"x": draw(arrays(draw(st.sampled_from(_EVERYWHERE)))), "dtype": draw(st.sampled_from([None, dtype]))}


def _dtype_like(x: np.ndarray, dtype: str | None) -> np.dtype:
    return x.dtype if dtype is None else numpy_dtype(dtype)


# Constants


def _same(got: np.ndarray, want: np.ndarray) -> str | None:
    """What is wrong where the arrays differ in values, shape or dtype."""
    return None if got.dtype == want.dtype and np.array_equal(got, want) else f"{got!r}, not {want!r}"


def _constant(value: int) -> Any:
    return lambda results, shape, dtype: _same(results[0], np.full(shape, value, dtype=numpy_dtype(dtype)))


def _constant_like(value: int) -> Any:
    return lambda results, x, dtype: _same(results[0], np.full(x.shape, value, dtype=_dtype_like(x, dtype)))


def _empty_fault(results: list[np.ndarray], shape: tuple[int, ...], dtype: np.dtype) -> str | None:
    got = results[0]
    return None if (got.shape, got.dtype) == (shape, dtype) else f"{got.dtype} of shape {got.shape}"


law("zeros", _typed, _constant(0))
law("ones", _typed, _constant(1))
law("zeros_like", _like, _constant_like(0))
law("ones_like", _like, _constant_like(1))
law("empty", _typed, lambda results, shape, dtype: _empty_fault(results, np.zeros(shape).shape, numpy_dtype(dtype)))
law("empty_like", _like, lambda results, x, dtype: _empty_fault(results, x.shape, _dtype_like(x, dtype)))
law(
    "full_like",
    lambda draw, dtype: {**_like(draw, dtype), "fill_value": draw(st.sampled_from([0, 1]))},
    lambda results, x, dtype, fill_value: _constant_like(fill_value)(results, x, dtype),
)


def _full(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    value = draw(arrays(dtype, draw(st.sampled_from([(), (3,), (2, 1)]))))
    shape = {(): _shape(draw), (3,): (2, 3), (2, 1): (4, 2, 3)}[value.shape]
    return {"shape": shape, "fill_value": value}


spec("full", _full, lambda shape, fill_value: np.broadcast_to(fill_value, shape), 0)


def _diagonal_ones(rows: int, columns: int | None, k: int) -> np.ndarray:
    columns = rows if columns is None else columns
    return np.arange(rows)[:, None] + k == np.arange(columns)


def _sides(first: str, second: str) -> Any:
    def draw(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
        side = st.integers(0, 5)
        return {first: draw(side), second: draw(st.none() | side), "k": draw(st.integers(-6, 6)), "dtype": dtype}

    return draw


spec("eye", _sides("n_rows", "n_cols"), lambda n_rows, n_cols, k, dtype: _diagonal_ones(n_rows, n_cols, k) * 1.0, 0)
spec(
    "identity",
    lambda draw, dtype: {"n": draw(st.integers(0, 5)), "dtype": dtype},
    lambda n, dtype: _diagonal_ones(n, n, 0) * 1.0,
    0,
)


def _below(rows: int, columns: int | None, k: int) -> np.ndarray:
    columns = rows if columns is None else columns
    return np.arange(columns) <= np.arange(rows)[:, None] + k


spec("tri", _sides("N", "M"), lambda N, M, k, dtype: _below(N, M, k) * 1.0, 0)


def _triangle(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    side = st.integers(0, 5)
    return {"n": draw(side), "k": draw(st.integers(-6, 6)), "m": draw(st.none() | side)}


spec("tril_indices", _triangle, lambda n, k, m: tuple(np.nonzero(_below(n, m, k))), 0)
spec("triu_indices", _triangle, lambda n, k, m: tuple(np.nonzero(~_below(n, m, k - 1))), 0)

# Sequences


def _integers(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    """Sequences that every dtype holds exactly."""
    low = 0 if dtype.startswith("u") else -20
    start, stop = draw(st.integers(low, 50)), draw(st.none() | st.integers(low, 50))
    step = draw(st.sampled_from([1, 2, 7] if dtype.startswith("u") else [1, 2, 7, -1, -3]))
    if dtype == "bool":
        start, stop, step = 0, draw(st.integers(0, 2)), 1
    return {"start": start, "stop": stop, "step": step, "dtype": dtype}


def _range(start: int, stop: int | None, step: int, dtype: str) -> np.ndarray:
    first, last = (0, start) if stop is None else (start, stop)
    return np.array(range(first, last, step), dtype=np.int64).astype(numpy_dtype(dtype))


spec("arange", _integers, _range, 0)

_REAL = st.sampled_from([-7.5, -1.0, 0.0, 0.1, 1.0, 3.0, 40.0])


def _between(bounds: Any) -> Any:
    def draw(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
        named = dtype if dtype in FLOATS else "float32"
        return {
            "start": draw(bounds),
            "stop": draw(bounds),
            "num": draw(st.integers(0, 7)),
            "endpoint": draw(st.booleans()),
            "dtype": named,
        }

    return draw


def _parts(num: int, endpoint: bool) -> np.ndarray:
    return np.arange(num) / np.longdouble(max(num - 1 if endpoint else num, 1))


def _linear(start: float, stop: float, num: int, endpoint: bool, dtype: str) -> np.ndarray:
    parts = _parts(num, endpoint)
    return start * (1 - parts) + stop * parts


def _geometric(start: float, stop: float, num: int, endpoint: bool, dtype: str) -> np.ndarray:
    return np.longdouble(start) * (np.longdouble(stop) / np.longdouble(start)) ** _parts(num, endpoint)


spec("linspace", _between(_REAL), _linear, 2.0, lambda start, stop, **_: max(abs(start), abs(stop)))
spec("geomspace", _between(st.sampled_from([0.01, 0.5, 1.0, 3.0, 1000.0])), _geometric, 4.0)
spec(
    "logspace",
    _between(st.sampled_from([-3.0, -0.5, 0.0, 1.0, 4.0])),
    lambda **arguments: np.longdouble(10) ** _linear(**arguments),
    16.0,  # the exponents are rounded to double precision
)


def _grid(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    count = draw(st.integers(1, 3))
    vectors = [draw(arrays(dtype, (draw(st.integers(0, 3)),))) for _ in range(count)]
    return {"*": vectors, "indexing": draw(st.sampled_from(["xy", "ij"]))}


def _meshgrid(*arrays: np.ndarray, indexing: str) -> tuple[np.ndarray, ...]:
    sizes = [len(x) for x in arrays]
    found = [
        np.broadcast_to(x.reshape([-1 if place == axis else 1 for place in range(len(arrays))]), sizes)
        for axis, x in enumerate(arrays)
    ]
    return tuple(np.swapaxes(x, 0, 1) for x in found) if indexing == "xy" and len(arrays) > 1 else tuple(found)


spec("meshgrid", _grid, _meshgrid, 0)
spec(
    "broadcast_arrays",
    lambda draw, dtype: {"*": [draw(arrays(dtype, shape)) for shape in draw(broadcastable(3))]},
    lambda *arrays: tuple(np.broadcast_arrays(*arrays)),
    0,
)

# Bringing in and changing the dtype

for _name, _argument in (("array", "data"), ("asarray", "x"), ("convert_to_tensor", "data"), ("from_dlpack", "x")):
    spec(
        _name,
        lambda draw, dtype, argument=_argument: {argument: draw(arrays(dtype))},
        lambda **given: next(iter(given.values())),
        0,
    )
spec("to_device", lambda draw, dtype: {"x": draw(arrays(dtype)), "device": "cpu"}, lambda x, device: x, 0)


def _targets(dtype: str) -> st.SearchStrategy[str]:
    return st.sampled_from(["complex64", "bool"] if dtype.startswith("complex") else _EVERYWHERE)


def _cast(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    return {"x": draw(arrays(dtype)), "dtype": draw(_targets(dtype))}


def _bounds(dtype: np.dtype) -> tuple[int, int]:
    info = np.iinfo(dtype)
    return int(info.min), int(info.max)


def _to_integer(x: np.ndarray, dtype: np.dtype, saturate: bool) -> np.ndarray:
    low, high = _bounds(dtype)

    def one(value: Any) -> int:
        if x.dtype.kind in "biu":
            return min(max(int(value), low), high) if saturate else (int(value) - low) % (high - low + 1) + low
        if math.isnan(value):
            return 0
        return low if value <= low else high if value >= high else int(value)

    values = x.ravel().tolist() if x.dtype.kind in "biu" else x.ravel()
    return np.array([one(value) for value in values], dtype=dtype).reshape(x.shape)


def _cast_reference(x: np.ndarray, dtype: str, saturate: bool = False) -> np.ndarray:
    target = numpy_dtype(dtype)
    if target.kind in "iu":
        return _to_integer(x, target, saturate)
    if target.kind == "b":
        return x != 0
    if saturate and target.kind in "fV" and x.dtype.kind != "c":
        biggest = np.longdouble(float(ml_dtypes.finfo(target).max))
        return np.where(np.isnan(x.astype(np.longdouble)), np.nan, np.clip(x.astype(np.longdouble), -biggest, biggest))
    return x


spec("cast", _cast, _cast_reference, 0.5)


def _saturate_cast(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    if dtype.startswith("complex"):
        return {"x": draw(arrays(dtype, finite=True, low=-9.0, high=9.0)), "dtype": "complex64"}
    target = draw(st.sampled_from([name for name in _EVERYWHERE if name != "complex64"]))
    return {"x": draw(arrays(dtype, finite=target in FLOATS)), "dtype": target}


spec("saturate_cast", _saturate_cast, lambda x, dtype: _cast_reference(x, dtype, True), 0.5)

_BY_SIZE = {
    1: ("int8", "uint8"),
    2: ("int16", "uint16", "float16", "bfloat16"),
    4: ("int32", "uint32", "float32"),
    8: ("int64", "uint64", "float64", "complex64"),
    16: ("complex128",),
}


def _view(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    x = np.ascontiguousarray(draw(arrays(dtype, finite=True)))
    return {"x": x, "dtype": draw(st.sampled_from(_BY_SIZE[x.dtype.itemsize]))}


law("view", _view, lambda results, x, dtype: _bytes_fault(results[0], x, numpy_dtype(dtype)))


def _bytes_fault(got: np.ndarray, x: np.ndarray, dtype: np.dtype) -> str | None:
    return None if got.dtype == dtype and got.shape == x.shape and got.tobytes() == x.tobytes() else repr(got)
