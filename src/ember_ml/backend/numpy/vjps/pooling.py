"""VJPs of pooling, in NumPy itself. The interface is that of ``basic.py``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ember_ml.backend.common.convolution import is_channels_first, pooling
from ember_ml.backend.numpy.vjps.basic import Wanted

__all__ = ["VJPS"]

Array = np.ndarray[Any, Any]


def _max_pool_back(
    g: Array, wanted: Wanted, x: Array, r: Array, pool_size: Any, strides: Any, padding: Any, data_format: str
) -> Any:
    """Return the gradient, which goes to the first of the largest elements of each window."""
    plan = pooling(x.shape, pool_size, strides, padding, data_format)
    is_first = is_channels_first(data_format, x.ndim)
    if is_first:
        x, r, g = (np.moveaxis(part, 1, -1) for part in (x, r, g))
    by_x, is_open = np.zeros(x.shape, g.dtype), np.ones(g.shape, np.bool_)
    for elements, results in plan.meetings(x.shape[1:-1]):
        is_smaller = np.less(x[elements], r[results])  # not where a window holds NaN
        by_x[elements] += g[results] * np.greater(is_open[results], is_smaller)
        is_open[results] &= is_smaller
    return (np.moveaxis(by_x, -1, 1) if is_first else by_x,)


VJPS: dict[str, tuple[Callable[..., Any] | None, Callable[..., Any]]] = {"max_pool": (None, _max_pool_back)}
