"""Read and check the parameters of distributions on the host, as float64 of the shape of the result."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from ember_ml.backend.host_arrays import as_host, host_dtypes
from ember_ml.core.dtypes import as_dtype

__all__ = ["checked_integer", "checked_number", "largest_below", "rates_of", "read_parameter", "thresholds_of"]


def checked_number(value: float, name: str, low: float = -math.inf, high: float = math.inf) -> float:
    """Return a Python number as a float; ``ValueError`` unless it is finite and from ``low`` to ``high``."""
    number = float(value)
    if not low <= number <= high or not math.isfinite(number):
        raise ValueError(f"{name} must be {_range(low, high)}, not {value}")
    return number


def checked_integer(value: Any, name: str) -> int:
    """Return an integer as a Python int; ``TypeError`` for anything else."""
    try:
        return operator.index(value)
    except TypeError as error:
        raise TypeError(f"{name} must be an integer, not {value!r}") from error


def _range(low: float, high: float) -> str:
    if math.isfinite(low) and math.isfinite(high):
        return f"from {low:g} to {high:g}"
    return f"a finite number not below {low:g}" if math.isfinite(low) else "a finite number"


def read_parameter(
    value: Any, shape: tuple[int, ...], name: str, low: float, high: float = math.inf, positive: bool = False
) -> np.ndarray:
    """Return a parameter as a float64 array of the shape of the result; with ``positive`` it must exceed ``low``."""
    array = as_host(value)
    if array.dtype.kind == "c":
        raise TypeError(f"{name} must be real, not {array.dtype}")
    array = array.astype(np.float64)
    is_fine = np.isfinite(array) & (array > low if positive else array >= low) & (array <= high)
    if not is_fine.all():
        wrong = array[~is_fine].flat[0]
        text = f"finite and above {low:g}" if positive else _range(low, high)
        raise ValueError(f"{name} must be {text}, not {wrong:g}")
    if np.broadcast_shapes(array.shape, shape) != shape:
        raise ValueError(f"{name} of shape {array.shape} does not broadcast to the shape {shape} of the result")
    return np.broadcast_to(array, shape)


def largest_below(bounds: tuple[float, float], dtype: str) -> np.ndarray:
    """Return the number of ``dtype`` next to the second bound towards the first; the bound where both are equal."""
    low, high = np.array(bounds, dtype=host_dtypes[as_dtype(dtype)])
    return np.asarray(np.nextafter(high, low))


def _probabilities(p: Any, count: int) -> np.ndarray:
    """Return the probabilities of a choice among ``count`` things as float64 numbers whose sum is 1 up to rounding."""
    array = as_host(p)
    if array.shape != (count,):
        raise ValueError(f"there are {count} things to choose from, and probabilities of shape {array.shape}")
    array = array.astype(np.float64)
    if not (array >= 0.0).all():
        raise ValueError("probabilities must not be negative")
    total = float(array.sum())
    if not abs(total - 1.0) <= 1e-3:
        raise ValueError(f"the probabilities must add up to 1, not to {total:g}")
    return array / total


def thresholds_of(p: Any, count: int) -> np.ndarray:
    """Return the bounds, in 62-bit integers, between the parts that the probabilities cut a random one's range into."""
    sums = np.cumsum(_probabilities(p, count))
    return (sums[:-1] / sums[-1] * 2.0**62).astype(np.int64)


def rates_of(p: Any, count: int, wanted: int) -> np.ndarray:
    """Return the probabilities of a choice without repetition in float32, of which ``wanted`` at least are not 0."""
    rates = _probabilities(p, count)
    possible = int((rates > 0.0).sum())
    if possible < wanted:
        raise ValueError(f"{wanted} different things cannot be chosen from the {possible} whose probability is not 0")
    return rates.astype(np.float32)
