"""Evenly spaced numbers, computed in double precision on the host so that every backend gives the same ones."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from ember_ml import dtypes as dt
from ember_ml.backend.host import as_host, cast_host, host_dtypes
from ember_ml.dtypes import EmberDType
from ember_ml.promotion import integer_range

__all__ = ["as_number", "host_arange", "integer_arange", "steps"]

Number = int | float | complex


def as_number(value: Any) -> Number:
    """A Python number of a Python number, a NumPy scalar or a 0-d tensor."""
    if type(value) in (int, float, complex):
        return value
    host = as_host(value)
    if host.ndim:
        raise TypeError(f"a number is needed, not a tensor of shape {host.shape}")
    found = host.item()
    return found if type(found) in (int, float, complex) else int(found) if host.dtype.kind == "b" else float(found)


def integer_arange(start: Any, stop: Any, step: Any, dtype: EmberDType | None) -> range | None:
    """The range where all three are ints and the dtype, by default int64, is an integer one that holds it; else None."""
    if stop is None:
        start, stop = 0, start
    bounds = [as_number(value) for value in (start, stop, step)]
    if not all(type(value) is int for value in bounds) or (dtype is not None and dtype.kind not in ("int", "uint")):
        return None
    if not bounds[2]:
        raise ValueError("the step must not be 0")
    found = range(*(operator.index(value) for value in bounds))
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
        if dtype is dt.uint64:  # beyond int64: counted from 0, in which sums wrap around rightly
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
    num = operator.index(num)
    if num < 0:
        raise ValueError(f"the number of elements must not be negative, as {num} is")
    divisor = num - 1 if endpoint else num
    return np.arange(num, dtype=np.float64) / divisor if divisor > 0 else np.zeros(num)
