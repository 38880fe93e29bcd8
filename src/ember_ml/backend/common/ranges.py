"""Compute evenly spaced numbers in double precision on the host, the same for every backend."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from ember_ml.backend.common.shapes import as_shape
from ember_ml.backend.host_arrays import as_host, cast_host, host_dtypes
from ember_ml.core import dtypes as dt
from ember_ml.core.dtypes import EmberDType
from ember_ml.core.promotion import integer_range

__all__ = ["as_number", "geometric", "host_arange", "integer_arange", "linear", "logarithmic", "steps", "triangle"]

Number = int | float | complex
_FLOAT = host_dtypes[dt.DEFAULT_FLOAT]


def as_number(value: Any) -> Number:
    """Convert a Python number, a NumPy scalar or a 0-d tensor to a Python number."""
    if type(value) in (int, float, complex):
        return value
    host = as_host(value)
    if host.ndim:
        raise TypeError(f"a number is needed, not a tensor of shape {host.shape}")
    found = host.item()
    return found if type(found) in (int, float, complex) else int(found) if host.dtype.kind == "b" else float(found)


def integer_arange(start: Any, stop: Any, step: Any, dtype: EmberDType | None) -> range | None:
    """Return the range where all three are ints and the dtype, int64 by default, is one of integers; else None."""
    if stop is None:
        start, stop = 0, start
    first, last, by = as_number(start), as_number(stop), as_number(step)
    if not (type(first) is int and type(last) is int and type(by) is int):
        return None
    if dtype is not None and dtype.kind not in ("int", "uint"):
        return None
    if not by:
        raise ValueError("the step must not be 0")
    found = range(first, last, by)
    if len(found):
        low, high = integer_range(dtype or dt.DEFAULT_INT)
        worst = next((value for value in (found[0], found[-1]) if not low <= value <= high), None)
        if worst is not None:
            raise OverflowError(f"the integer {worst} does not fit {dtype or dt.DEFAULT_INT} ({low} to {high})")
    return found


def host_arange(start: Any, stop: Any, step: Any, dtype: EmberDType | None) -> np.ndarray:
    """``start + i * step`` for each i below ``ceil((stop - start) / step)``."""
    integers = integer_arange(start, stop, step, dtype)
    if integers is not None:
        native = host_dtypes[dtype or dt.DEFAULT_INT]
        if dtype is dt.uint64:  # beyond int64: counted from 0, with wrapping sums
            count = np.arange(len(integers), dtype=native)
            return count * native.type(integers.step % 2**64) + native.type(integers.start % 2**64)
        return (np.arange(len(integers), dtype=np.int64) * integers.step + integers.start).astype(native)
    if stop is None:
        start, stop = 0, start
    first, last, by = as_number(start), as_number(stop), as_number(step)
    if isinstance(first, complex) or isinstance(last, complex) or isinstance(by, complex):
        raise TypeError("a range is made of real numbers")
    if not by or math.isnan(by):
        raise ValueError(f"the step must not be {by}")
    ratio = (last - first) / by
    if not math.isfinite(ratio):
        raise ValueError(f"a range from {first} to {last} by {by} has no number of elements")
    values = first + np.arange(max(0, math.ceil(ratio)), dtype=np.float64) * by
    default = dt.DEFAULT_INT if type(first) is type(last) is type(by) is int else dt.DEFAULT_FLOAT
    return cast_host(values, host_dtypes[dtype or default])


def steps(num: int, endpoint: bool) -> np.ndarray:
    """``num`` float64 numbers from 0 to 1, the 1 included if ``endpoint``."""
    return np.linspace(0.0, 1.0, _count(num), endpoint=bool(endpoint))


def linear(start: Any, stop: Any, num: int, endpoint: bool, dtype: EmberDType | None) -> np.ndarray:
    """``num`` evenly spaced numbers."""
    first, last = (start, stop) if type(start) is type(stop) is float else _ends(start, stop)
    count = _count(num)
    if isinstance(first, complex) or isinstance(last, complex):
        return _cast_values(np.linspace(first, last, count, endpoint=bool(endpoint)), dtype)
    # the numbers of np.linspace in less than half of its time
    parts, width = count - bool(endpoint), last - first
    step = width / parts if parts > 0 else width
    values = np.arange(count, dtype=np.float64)
    if step or parts <= 0:
        values *= step
    else:  # between neighbours is less than the least number
        values /= parts
        values *= width
    values += first
    if endpoint and count > 1:
        values[-1] = last
    if dtype is None and _is_moderate(step) and _is_moderate(first) and _is_moderate(last):
        return values.astype(_FLOAT)  # none vanishes or overflows: nothing for NumPy to warn of, which takes longer
    return _cast_values(values, dtype)


def logarithmic(start: Any, stop: Any, num: int, endpoint: bool, base: Any, dtype: EmberDType | None) -> np.ndarray:
    """``base`` to the power of ``num`` evenly spaced exponents."""
    first, last, root = _ends(start, stop, base)
    return _cast_values(np.logspace(first, last, _count(num), endpoint=bool(endpoint), base=root), dtype)


def geometric(start: Any, stop: Any, num: int, endpoint: bool, dtype: EmberDType | None) -> np.ndarray:
    """``num`` numbers with one ratio between neighbours."""
    first, last = _ends(start, stop)
    return _cast_values(np.geomspace(first, last, _count(num), endpoint=bool(endpoint)), dtype)


def _ends(*values: Any) -> list[float | complex]:
    numbers = [as_number(value) for value in values]
    return [number if isinstance(number, complex) else float(number) for number in numbers]


def _is_moderate(number: float) -> bool:
    """Whether float32 has room for the number, and for what double precision leaves of it where others cancel it."""
    return not number or 1e-20 < abs(number) < 1e20


def _count(num: int) -> int:
    count = operator.index(num)
    if count < 0:
        raise ValueError(f"the number of elements must not be negative, as {count} is")
    return count


def _cast_values(values: np.ndarray, dtype: EmberDType | None) -> np.ndarray:
    """Cast double precision to the requested or the default dtype, rounding down to integers."""
    if dtype is None:
        dtype = dt.DEFAULT_COMPLEX if values.dtype.kind == "c" else dt.DEFAULT_FLOAT
    elif dtype.kind in ("int", "uint") and values.dtype.kind == "f":
        values = np.floor(values)
    return cast_host(values, host_dtypes[dtype])


def triangle(n: int, k: int, m: int | None, upper: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows and columns of one half of an n by m matrix."""
    rows, columns = as_shape((n, n if m is None else m))
    mask = np.tri(rows, columns, operator.index(k) - upper, dtype=bool)
    found = np.nonzero(~mask if upper else mask)
    return found[0].astype(np.int64), found[1].astype(np.int64)
