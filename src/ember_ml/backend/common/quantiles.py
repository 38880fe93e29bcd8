"""Read the probabilities of quantiles on the host and compute their positions among sorted elements.

Both are Python numbers: constants for tracing.
"""

from __future__ import annotations

import math
from typing import Any

from ember_ml.backend.host_arrays import as_host
from ember_ml.core import dtypes as dt

__all__ = ["fractions", "positions", "read_probabilities"]


def fractions(q: Any, whole: float) -> Any:
    """``q``, a number or several, divided by ``whole`` in double precision."""
    return q / whole if type(q) is float or type(q) is int else as_host(q, dt.float64) / whole


def read_probabilities(q: Any) -> tuple[tuple[int, ...], list[float]]:
    """Return the shape of ``q``, a number or several between 0 and 1, and its elements in a row."""
    if type(q) is float or type(q) is int:
        shape, values = (), [float(q)]
    elif isinstance(q, list | tuple) and all(type(one) is float or type(one) is int for one in q):
        shape, values = (len(q),), [float(one) for one in q]
    else:
        array = as_host(q, dt.float64)
        shape, values = array.shape, array.ravel().tolist()
    for value in values:
        if not 0.0 <= value <= 1.0:
            raise ValueError(f"the part {value} of the elements is asked for, which is not between 0 and 1")
    return shape, values


def positions(n: int, probabilities: list[float]) -> tuple[list[int], list[int], list[float]]:
    """Return the two indices that each quantile of ``n`` sorted elements lies between, and the upper one's weight."""
    exact = [probability * (n - 1) for probability in probabilities]
    return [math.floor(e) for e in exact], [math.ceil(e) for e in exact], [e - math.floor(e) for e in exact]
