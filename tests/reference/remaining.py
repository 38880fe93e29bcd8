"""References of the ops that fit none of the other modules."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import ml_dtypes
import numpy as np
from hypothesis import strategies as st

from tests.reference import arrays, broadcastable, numpy_dtype, shapes
from tests.reference.products import wrapped
from tests.reference.spec import binary, law, spec

_INSIDE: dict[str, Any] = {"finite": True, "low": -20.0, "high": 20.0}


def _floating(x: np.ndarray) -> np.ndarray:
    return x.astype(np.longdouble) if x.dtype.kind in "biu" else x


# Parts of numbers


def _ldexp(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    first, second = draw(broadcastable(2))
    exponents = np.random.default_rng(draw(st.integers(0, 2**32 - 1))).integers(-12, 13, second)
    return {"x": draw(arrays(dtype, first, finite=True, low=-100.0, high=100.0)), "y": exponents}


spec("ldexp", _ldexp, lambda x, y: _floating(x) * np.longdouble(2) ** y, 0.5)


def _neighbours(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    first, second = draw(broadcastable(2))
    return {"x": draw(arrays(dtype, first)), "y": draw(arrays(dtype, second))}


def _neighbour_fault(results: list[np.ndarray], x: np.ndarray, y: np.ndarray) -> str | None:
    """There is no number of the dtype between one and the next: what lies half-way is rounded to one of both."""
    got = results[0]
    x, y = (np.broadcast_to(part, got.shape).astype(got.dtype) for part in (x, y))
    wide, start, end = (part.astype(np.longdouble) for part in (got, x, y))
    missing = np.isnan(start) | np.isnan(end)
    if not np.array_equal(np.isnan(wide), missing):
        return f"NaN in {got!r}"
    stays = (start == end) & ~missing
    if not np.array_equal(wide[stays], end[stays]):
        return f"moved from {x!r} towards itself to {got!r}"
    moves = ~stays & ~missing & np.isfinite(start)
    if not (np.sign(wide - start)[moves] == np.sign(end - start)[moves]).all():
        return f"{got!r} is not from {x!r} towards {y!r}"
    finite = moves & np.isfinite(wide)
    middle = ((wide + start) / 2)[finite].astype(got.dtype).astype(np.longdouble)
    between = (middle != wide[finite]) & (middle != start[finite])
    return f"{got!r} is not next to {x!r}" if between.any() else None


law("nextafter", _neighbours, _neighbour_fault)
binary(
    "polar",
    lambda x, y: _floating(x) * np.exp(1j * _floating(y)),
    ulps=8.0,
    low=0.0,
    high=10.0,
    finite=True,
    scale=lambda x, y: np.abs(_floating(x)) + 0 * _floating(y),
)

# Statistics of variables


def _variables(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    rowvar, count = draw(st.booleans()), draw(st.integers(2, 5))
    sides = lambda rows: (rows, count) if rowvar else (count, rows)  # noqa: E731
    first = (count,) if draw(st.booleans()) and rowvar else sides(draw(st.integers(1, 3)))
    second = draw(st.sampled_from([None, sides(2)]))
    y = None if second is None else draw(arrays(dtype, second, **_INSIDE))
    return {"x": draw(arrays(dtype, first, **_INSIDE)), "y": y, "rowvar": rowvar}


def _rows(x: np.ndarray, y: np.ndarray | None, rowvar: bool) -> np.ndarray:
    parts = [_floating(part) for part in (x, y) if part is not None]
    parts = [np.atleast_2d(part) if rowvar or part.ndim < 2 else part.T for part in parts]
    return np.concatenate(parts)


def _covariance(rows: np.ndarray, divisor: int, weights: Any = 1) -> Any:
    total = np.sum(weights + 0 * rows[:1].real)
    centred = rows - np.sum(rows * weights, axis=1, keepdims=True) / total
    return np.squeeze((centred * weights) @ np.conj(centred).T / divisor)


def _cov(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    return {**_variables(draw, dtype), "ddof": draw(st.sampled_from([None, 0, 1])), "bias": draw(st.booleans())}


def _cov_reference(x: np.ndarray, y: Any, rowvar: bool, ddof: int | None, bias: bool) -> Any:
    rows = _rows(x, y, rowvar)
    return _covariance(rows, rows.shape[1] - ((0 if bias else 1) if ddof is None else ddof))


def _squares(x: np.ndarray, y: Any = None, **_: Any) -> Any:
    return sum(np.max(np.abs(_floating(part))) ** 2 for part in (x, y) if part is not None) * 4 + 1e-6


spec("cov", _cov, _cov_reference, 8.0, _squares)


def _correlated(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    """Variables that vary: each has a large first observation and a small last one."""
    found = _variables(draw, dtype)
    for name in ("x", "y"):
        part = found[name]
        if part is not None:
            part = np.clip(part, 0, 9).astype(part.dtype) if part.dtype.kind in "iu" else np.ascontiguousarray(part)
            axis = 0 if part.ndim < 2 or not found["rowvar"] else 1
            moved = np.moveaxis(part, axis, 0)
            if dtype == "bool":
                moved[0], moved[-1] = True, False
            else:
                moved[0], moved[-1] = 40, 1
            found[name] = part
    return found


def _corrcoef(x: np.ndarray, y: Any, rowvar: bool) -> Any:
    rows = _rows(x, y, rowvar)
    covariance = np.atleast_2d(_covariance(rows, rows.shape[1]))
    deviations = np.sqrt(np.diagonal(covariance).real)
    return np.squeeze(covariance / deviations[:, None] / deviations)


spec("corrcoef", _correlated, _corrcoef, 16.0, lambda **_: 1.0)


def _signals(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    limits = {} if dtype.startswith(("int", "uint")) else _INSIDE
    x, y = (draw(arrays(dtype, (draw(st.integers(1, 5)),), **limits)) for _ in range(2))
    return {"x": x, "y": y, "mode": draw(st.sampled_from(["valid", "same", "full"]))}


def _correlate(x: np.ndarray, y: np.ndarray, mode: str) -> Any:
    m, n = len(x), len(y)
    y = y if y.dtype == object else np.conj(y)
    full = [sum(x[i] * y[i - k] for i in range(m) if 0 <= i - k < n) for k in range(1 - n, m)]
    length = {"full": m + n - 1, "same": max(m, n), "valid": abs(m - n) + 1}[mode]
    # NumPy correlates the shorter one along the longer one, and turns the result round where that exchanged them
    start = (m + n - 1 - length) // 2 if m >= n else (m + n - 1 - length + 1) // 2
    return np.array(full[start : start + length], dtype=object if x.dtype == object else None)


def _correlate_reference(x: np.ndarray, y: np.ndarray, mode: str) -> Any:
    if x.dtype.kind in "iu":
        return wrapped(_correlate(x.astype(object), y.astype(object), mode), x.dtype)
    return _correlate(x, y, mode)


spec(
    "correlate",
    _signals,
    _correlate_reference,
    8.0,
    lambda x, y, mode: None if x.dtype.kind in "iu" else _correlate(np.abs(x), np.abs(y), mode),
)


def _average(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    x = draw(arrays(dtype, shapes(min_dims=1, min_side=1), **_INSIDE))
    axis = draw(st.none() | st.integers(-x.ndim, x.ndim - 1))
    shape = draw(st.sampled_from([x.shape] if axis is None else [x.shape, (x.shape[axis],)]))
    weights = np.random.default_rng(draw(st.integers(0, 2**32 - 1))).integers(1, 4, shape).astype(numpy_dtype(dtype))
    given = draw(st.sampled_from([None, weights]))
    return {"x": x, "axis": axis, "weights": given, "returned": draw(st.booleans()), "keepdims": draw(st.booleans())}


def _average_reference(x: np.ndarray, axis: Any, weights: Any, returned: bool, keepdims: bool) -> Any:
    values = _floating(x)
    counts = np.ones(x.shape, dtype=np.longdouble) if weights is None else _floating(weights)
    if counts.shape != x.shape:
        counts = np.moveaxis(np.broadcast_to(counts, (*np.moveaxis(x, axis, -1).shape,)), -1, axis)
    total = np.sum(counts, axis=axis, keepdims=keepdims)
    found = np.sum(values * counts, axis=axis, keepdims=keepdims) / total
    return (found, total) if returned else found


spec("average", _average, _average_reference, 8.0, lambda x, **_: np.max(np.abs(_floating(x))) + 4 * x.size)


def _moments(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    x = draw(arrays(dtype, shapes(min_dims=1, min_side=1), **_INSIDE))
    several = st.lists(st.integers(0, x.ndim - 1), unique=True, min_size=1).map(tuple)
    axes = draw(st.one_of(st.none(), st.integers(-x.ndim, x.ndim - 1), several))
    return {"x": x, "axes": axes, "keepdims": draw(st.booleans())}


def _moments_reference(x: np.ndarray, axes: Any, keepdims: bool) -> Any:
    values = _floating(x)
    mean = np.mean(values, axis=axes, keepdims=True)
    variance = np.mean(np.abs(values - mean) ** 2, axis=axes, keepdims=keepdims)
    return np.mean(values, axis=axes, keepdims=keepdims), variance


spec("moments", _moments, _moments_reference, 8.0, lambda x, **_: np.max(np.abs(_floating(x)), initial=1.0) ** 2)

# Choosing, splitting, ordering


def _select(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    count = draw(st.integers(1, 3))
    shapes_of = draw(broadcastable(2))
    conditions = [draw(arrays("bool", shapes_of[0])) for _ in range(count)]
    choices = [draw(arrays(dtype, shapes_of[1])) for _ in range(count)]
    return {"conditions": conditions, "choices": choices, "default": draw(arrays(dtype, ()))}


def _selected(conditions: list[np.ndarray], choices: list[np.ndarray], default: np.ndarray) -> np.ndarray:
    found = np.broadcast_to(default, np.broadcast_shapes(conditions[0].shape, choices[0].shape))
    for condition, choice in zip(conditions[::-1], choices[::-1], strict=True):
        found = np.where(condition, choice, found)
    return found


spec("select", _select, _selected, 0)


def _split_draw(axis: int, least: int) -> Any:
    def draw(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
        x = draw(arrays(dtype, shapes(min_dims=least)))
        place = 0 if x.ndim == 1 else axis
        length = x.shape[place]
        parts = [count for count in (1, 2, 3, 4) if length % count == 0]
        places = draw(st.lists(st.integers(0, length), max_size=3).map(sorted))
        return {"x": x, "indices_or_sections": draw(st.sampled_from([*parts, places]))}

    return draw


def _pieces(x: np.ndarray, indices_or_sections: Any, axis: int) -> tuple[np.ndarray, ...]:
    place = 0 if x.ndim == 1 else axis
    length = x.shape[place]
    if isinstance(indices_or_sections, int):
        size = length // indices_or_sections
        bounds = [size * k for k in range(indices_or_sections + 1)]
    else:
        bounds = [0, *indices_or_sections, length]
    return tuple(np.take(x, range(a, max(a, b)), axis=place) for a, b in pairwise(bounds))


for _name, _axis, _least in (("vsplit", 0, 2), ("hsplit", 1, 1), ("dsplit", 2, 3)):
    spec(
        _name,
        _split_draw(_axis, _least),
        lambda x, indices_or_sections, axis=_axis: _pieces(x, indices_or_sections, axis),
        0,
    )


def _partitioned(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    x = draw(arrays(dtype, shapes(min_dims=1, min_side=1)))
    axis = draw(st.integers(-x.ndim, x.ndim - 1))
    return {"x": x, "kth": draw(st.integers(-x.shape[axis], x.shape[axis] - 1)), "axis": axis}


def _partition_fault(results: list[np.ndarray], x: np.ndarray, kth: int, axis: int) -> str | None:
    got = np.moveaxis(results[0], axis, -1)
    values = np.moveaxis(x, axis, -1)
    length = values.shape[-1]
    if results[0].dtype != np.int64 or not np.array_equal(
        np.sort(got, axis=-1), np.broadcast_to(np.arange(length), got.shape)
    ):
        return f"not a permutation: {results[0]!r}"
    comparable = values.astype(np.float64) if values.dtype == ml_dtypes.bfloat16 else values
    ordered = np.take_along_axis(comparable, got, axis=-1)
    rank = np.argsort(np.argsort(comparable, axis=-1, kind="stable"), axis=-1)
    at = np.sort(comparable, axis=-1)[..., kth]
    if not np.array_equal(ordered[..., kth], at, equal_nan=comparable.dtype.kind == "f"):
        return f"{ordered!r} does not have {at!r} at {kth}"
    places = np.take_along_axis(rank, got, axis=-1)
    middle, place = ordered[..., kth], kth % length
    before, after = ordered[..., :place], ordered[..., place + 1 :]
    fine = not (before > middle[..., None]).any() and not (after < middle[..., None]).any()
    return None if fine else f"{ordered!r} is not parted at {kth} ({places!r})"


law("argpartition", _partitioned, _partition_fault)


def _vander(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    limits = {} if dtype.startswith(("int", "uint")) else {"finite": True, "low": -3.0, "high": 3.0}
    x = draw(arrays(dtype, (draw(st.integers(0, 4)),), **limits))
    return {"x": x, "N": draw(st.none() | st.integers(0, 5)), "increasing": draw(st.booleans())}


def _vander_reference(x: np.ndarray, N: int | None, increasing: bool) -> Any:
    count = len(x) if N is None else N
    powers = range(count) if increasing else range(count - 1, -1, -1)
    if x.dtype.kind in "iu":
        rows = [[int(value) ** power for power in powers] for value in x]
        return wrapped(np.array(rows, dtype=object).reshape(len(x), count), x.dtype)
    columns = [np.prod([x] * power, axis=0) if power else np.ones_like(x) for power in powers]
    return np.stack(columns, axis=-1) if columns else np.zeros((len(x), 0))


spec("vander", _vander, _vander_reference, 8.0)
