"""Read the probabilities of quantiles on the host and compute their positions among sorted elements.

Both are Python numbers: constants for tracing.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from ember_ml.backend.host_arrays import as_host
from ember_ml.core import dtypes as dt

__all__ = ["METHODS", "Method", "fractions", "method_of", "positions", "read_probabilities"]


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


class Method(NamedTuple):
    """How a quantile is read off sorted elements.

    The quantile ``q`` of ``n`` elements lies at ``q * (n + stretch) + start`` among the indices 0, 1, ... ``steps`` has
    the weight of the upper neighbour where that is an index, below the middle of two, in the middle after an even and
    after an odd index, and above the middle; None is the fraction itself.
    """

    stretch: float
    start: float
    steps: tuple[float, float, float, float, float] | None = None


METHODS = {
    "inverted_cdf": Method(0.0, -1.0, (0.0, 1.0, 1.0, 1.0, 1.0)),
    "averaged_inverted_cdf": Method(0.0, -1.0, (0.5, 1.0, 1.0, 1.0, 1.0)),
    "closest_observation": Method(0.0, -1.0, (0.0, 0.0, 1.0, 0.0, 1.0)),
    "interpolated_inverted_cdf": Method(0.0, -1.0),
    "hazen": Method(0.0, -0.5),
    "weibull": Method(1.0, -1.0),
    "linear": Method(-1.0, 0.0),
    "median_unbiased": Method(1 / 3, -2 / 3),
    "normal_unbiased": Method(0.25, -0.625),
    "lower": Method(-1.0, 0.0, (0.0, 0.0, 0.0, 0.0, 0.0)),
    "higher": Method(-1.0, 0.0, (0.0, 1.0, 1.0, 1.0, 1.0)),
    "midpoint": Method(-1.0, 0.0, (0.0, 0.5, 0.5, 0.5, 0.5)),
    "nearest": Method(-1.0, 0.0, (0.0, 0.0, 0.0, 1.0, 1.0)),
}


def method_of(name: str) -> Method:
    """Return the method of that name; ``ValueError`` where there is none."""
    method = METHODS.get(name)
    if method is None:
        raise ValueError(f"method is one of {', '.join(METHODS)}; not {name!r}")
    return method


def positions(n: int, probabilities: list[float], name: str) -> tuple[list[int], list[int], list[float]]:
    """Return the two indices that each quantile of ``n`` sorted elements lies between, and the upper one's weight."""
    method = method_of(name)
    below, above, weights = [], [], []
    for probability in probabilities:
        exact = probability * (n + method.stretch) + method.start
        lower = math.floor(exact)
        weight = exact - lower
        if method.steps is not None:
            middle = 2 + lower % 2
            weight = method.steps[0 if not weight else 1 if weight < 0.5 else 4 if weight > 0.5 else middle]
        below.append(min(max(lower + (weight == 1), 0), n - 1))
        above.append(min(max(lower + (weight > 0), 0), n - 1))
        weights.append(weight)
    return below, above, weights
