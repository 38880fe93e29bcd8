"""Independent references: NumPy and SciPy in wider precision. The one test module that may import a tensor library.

Nothing here uses Ember ML. A reference gets the exact input values, widened (floats to long double, complex to complex
long double, integers as they are), so that its own rounding is far below the tolerance of the op under test.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

__all__ = [
    "EPS",
    "array_of",
    "arrays",
    "as_array",
    "broadcastable",
    "close",
    "close_enough",
    "close_stack",
    "integers_below",
    "is_array",
    "is_finite_below",
    "largest_error",
    "largest_finite",
    "numpy_dtype",
    "shapes",
    "stack_samples",
    "sum_of_sizes",
    "widen",
]

FLOATS = ("float16", "bfloat16", "float32", "float64")
COMPLEX = ("complex64", "complex128")
EPS = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-52}
EPS |= {"complex64": EPS["float32"], "complex128": EPS["float64"]}


def numpy_dtype(name: str) -> np.dtype:
    return np.dtype(ml_dtypes.bfloat16) if name == "bfloat16" else np.dtype(name)


def is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray)


def as_array(value: Any, dtype: str | None = None) -> np.ndarray:
    return np.asarray(value, dtype=None if dtype is None else numpy_dtype(dtype))


def _values(
    rng: np.random.Generator, dtype: str, count: int, finite: bool, low: float | None, high: float | None
) -> np.ndarray:
    """Values of a dtype: ordinary ones, its extremes and, unless ``finite``, NaN and the infinities."""
    if dtype == "bool":
        return rng.integers(0, 2, count).astype(bool)
    if dtype in COMPLEX:
        part = "float32" if dtype == "complex64" else "float64"
        real, imaginary = (_values(rng, part, count, finite, low, high) for _ in range(2))
        return (real + 1j * imaginary).astype(np.complex128)
    if dtype.startswith(("int", "uint")):
        info = np.iinfo(dtype)
        smallest = info.min if low is None else max(info.min, math.ceil(low))
        largest = info.max if high is None else min(info.max, math.floor(high))
        wide = rng.integers(smallest, largest, count, dtype=dtype, endpoint=True)
        near = rng.integers(max(smallest, -4), min(largest, 4), count, dtype=dtype, endpoint=True)
        ends = rng.choice(np.array([smallest, largest], dtype=dtype), count)
        return np.choose(rng.integers(0, 5, count), [wide, wide, near, near, ends])
    biggest = float(ml_dtypes.finfo(numpy_dtype(dtype)).max)
    smallest, largest = (-biggest if low is None else low), (biggest if high is None else high)
    ordinary = rng.uniform(max(smallest, -100.0), min(largest, 100.0), count)
    simple = [v for v in (0.0, -0.0, 1.0, -1.0, 0.5, 2.0, -3.0) if smallest <= v <= largest] or [smallest]
    special = [smallest, largest] if abs(smallest) < biggest or finite else [biggest, -biggest]
    if not finite and low is None and high is None:
        special += [math.nan, math.inf, -math.inf]
    return np.choose(
        rng.integers(0, 6, count),
        [
            ordinary,
            ordinary,
            ordinary,
            rng.choice(simple, count),
            rng.choice(simple, count),
            rng.choice(special, count),
        ],
    )


def shapes(
    min_dims: int = 0, max_dims: int = 3, min_side: int = 0, max_side: int = 4
) -> st.SearchStrategy[tuple[int, ...]]:
    return (
        hnp.array_shapes(min_dims=min_dims, max_dims=max_dims, min_side=min_side, max_side=max_side)
        if min_dims
        else (
            st.one_of(
                st.just(()), hnp.array_shapes(min_dims=1, max_dims=max_dims, min_side=min_side, max_side=max_side)
            )
        )
    )


@st.composite
def arrays(
    draw: st.DrawFn,
    dtype: str,
    shape: st.SearchStrategy[tuple[int, ...]] | tuple[int, ...] | None = None,
    finite: bool = False,
    low: float | None = None,
    high: float | None = None,
) -> np.ndarray:
    """Arrays of a dtype, often strided or transposed."""
    size = shape if isinstance(shape, tuple) else draw(shape if shape is not None else shapes())
    # one seed instead of every element: drawing elements one by one takes most of a test's time
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    values = _values(rng, dtype, math.prod(size), finite, low, high)
    with np.errstate(all="ignore"):
        array = values.astype(numpy_dtype(dtype)).reshape(size)
    layout = draw(st.sampled_from(("plain", "plain", "fortran", "strided", "reversed")))
    if layout == "fortran" and array.ndim > 1:
        return np.asfortranarray(array)
    if layout == "strided" and array.ndim:
        wide = np.zeros((*size[:-1], 2 * size[-1]), dtype=array.dtype)
        wide[..., ::2] = array
        return wide[..., ::2]
    if layout == "reversed" and array.ndim:
        return np.ascontiguousarray(array[::-1])[::-1]
    return array


def _exact_dtype(dtype: str) -> Any:
    if dtype in COMPLEX:
        return np.complex128
    if dtype in FLOATS:
        return np.float64
    return dtype


def array_of(dtype: str, values: Any) -> np.ndarray:
    """An array of exactly these values in a dtype."""
    return np.array(values, dtype=_exact_dtype(dtype)).astype(numpy_dtype(dtype))


@st.composite
def broadcastable(draw: st.DrawFn, number: int, **limits: int) -> tuple[tuple[int, ...], ...]:
    """``number`` shapes that broadcast together."""
    found = draw(hnp.mutually_broadcastable_shapes(num_shapes=number, max_dims=3, max_side=4, min_side=0))
    return found.input_shapes


def integers_below(size: int, shape: tuple[int, ...]) -> st.SearchStrategy[np.ndarray]:
    """Index arrays: every value valid for an axis of ``size``, negative ones included."""
    return hnp.arrays(np.int64, shape, elements=st.integers(-size, size - 1))


def widen(value: Any) -> Any:
    """An input as the reference gets it: the same values in a wider dtype."""
    if not isinstance(value, np.ndarray):
        return [widen(item) for item in value] if isinstance(value, list) else value
    if value.dtype.kind == "c":
        return value.astype(np.clongdouble)
    if value.dtype.kind == "f" or value.dtype == numpy_dtype("bfloat16"):
        return value.astype(np.longdouble)
    return value


def close(got: np.ndarray, want: Any, ulps: float, scale: Any = None) -> str | None:
    """None where ``got`` agrees with ``want`` to ``ulps`` units of its own precision; else what differs.

    ``want`` is first rounded to the dtype of ``got``, so that overflow to infinity is agreement. ``scale`` is the
    magnitude that errors are measured against (the sum of absolute terms, for sums); the result's own where it is None.
    """
    want = np.asarray(want)
    if got.shape != want.shape:
        return f"shape {got.shape}, not {want.shape}"
    if got.dtype.kind in "biu" or got.dtype.name not in EPS:
        same = np.array_equal(got, want.astype(got.dtype))
        return None if same else f"{got.tolist()}, not {want.tolist()}"
    if got.dtype.kind == "c":
        parts = []
        for name in ("real", "imag"):
            part = getattr(want, name)
            whole = np.where(np.isfinite(np.abs(want)), np.abs(want), np.abs(part))  # beside an infinite part, its own
            parts.append(close(getattr(got, name), part, ulps, whole if scale is None else scale))
        return next((part for part in parts if part), None)
    with np.errstate(all="ignore"):
        rounded = want.astype(got.dtype).astype(np.longdouble)
        exact = got.astype(np.longdouble)
        magnitude = np.abs(want.astype(np.longdouble)) if scale is None else np.abs(scale).astype(np.longdouble)
        tiny = np.longdouble(float(ml_dtypes.finfo(got.dtype).tiny))
        slack = ulps * EPS[got.dtype.name] * np.where(np.isfinite(magnitude), magnitude, 0) + ulps * tiny
        biggest = np.longdouble(float(ml_dtypes.finfo(got.dtype).max))
        overflowed = (np.abs(want.astype(np.longdouble)) > biggest * (1 - ulps * EPS[got.dtype.name])) & (
            (exact == rounded) | (np.abs(exact) >= biggest * (1 - ulps * EPS[got.dtype.name]))
        )
        fine = (np.isnan(exact) & np.isnan(rounded)) | (exact == rounded) | (np.abs(exact - want) <= slack) | overflowed
    if fine.all():
        return None
    where = np.argwhere(~fine)[0] if fine.ndim else ()
    index = tuple(int(i) for i in where)
    return f"{float(exact[index])!r}, not {float(want[index])!r}, at {index}"


def largest_error(got: Any, want: Any, size: Any) -> float:
    """The largest difference from ``want``, as a part of ``size``."""
    return float((np.abs(np.asarray(got).astype(np.longdouble) - want) / size).max())


Reference = Callable[..., Any]


def close_enough(got: Any, want: Any, signless: bool = False, rtol: float = 2e-4, atol: float = 2e-5) -> bool:
    """Whether two results of a client agree; shapes must be equal."""
    first, second = np.asarray(got), np.asarray(want)
    if first.shape != second.shape:
        return False
    if signless:
        first, second = np.abs(first), np.abs(second)
    return bool(np.allclose(first, second, rtol=rtol, atol=atol, equal_nan=True))


def is_finite_below(array: np.ndarray, limit: float) -> bool:
    """Whether no element is NaN or larger than ``limit``."""
    return bool((np.abs(array) < limit).all())


def sum_of_sizes(operands: list[np.ndarray]) -> float:
    """Return the product of the sums of sizes of each operand: no sum of their products is larger."""
    with np.errstate(all="ignore"):
        return math.prod(max(1.0, float(np.abs(operand.astype(np.float64)).sum())) for operand in operands)


def largest_finite(array: Any) -> float:
    """Return the largest size of the finite elements, 0 where there are none."""
    sizes = np.abs(np.asarray(array)).astype(np.float64)
    return float(sizes[np.isfinite(sizes)].max(initial=0.0))


def stack_samples(array: np.ndarray, length: int, axis: int | None, seed: int, scaled: bool) -> np.ndarray:
    """Stack ``length`` variants of ``array`` along ``axis``; None returns it as it is.

    A variant has the same elements in another order; or, where ``scaled``, in the same order but smaller, so that
    matrices stay definite or triangular and edges sorted.
    """
    if axis is None:
        return array
    rng = np.random.default_rng(seed)
    variants = [array]
    while len(variants) < length:
        if not scaled:
            variants.append(rng.permutation(array.reshape(-1)).reshape(array.shape))
        elif array.dtype.kind in "fcV":
            variants.append((array * array.dtype.type(0.5 ** len(variants))).astype(array.dtype))
        else:
            variants.append(array)
    return np.stack(variants, axis)


def close_stack(got: np.ndarray, wanted: list[np.ndarray], slack: float = 0.0) -> str | None:
    """Compare a stacked result with the results of the single calls, to the precision of a few sums."""
    want = np.stack(wanted)
    if got.shape != want.shape or got.dtype != want.dtype:
        return f"{got.dtype}{got.shape} instead of {want.dtype}{want.shape}"
    if got.dtype.kind in "biu":
        return None if np.array_equal(got, want) else f"{got.tolist()} instead of {want.tolist()}"
    wide = np.complex128 if got.dtype.kind == "c" else np.float64
    got, want = got.astype(wide), want.astype(wide)
    finite = np.isfinite(want)
    scale = np.abs(want[finite]).max(initial=0.0)
    with np.errstate(all="ignore"):
        far = np.abs(got - want) > EPS[str(wanted[0].dtype)] * (256 * np.abs(want) + 32 * scale) + slack
    same = np.array_equal(np.isnan(got), np.isnan(want)) and np.array_equal(np.isinf(got), np.isinf(want))
    if same and not far[finite].any():
        return None
    return f"{got.tolist()} instead of {want.tolist()}"
