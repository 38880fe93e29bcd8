"""VJPs of pooling, in NumPy itself. The interface is that of ``basic.py``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ember_ml.backend.common.convolution import is_channels_first, pooling
from ember_ml.backend.numpy.sliding_windows import cut_padding, pad_with, windows_of
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
    wide = pad_with(-np.inf, x, plan)
    by_wide = np.zeros(wide.shape, g.dtype)
    windows, targets = windows_of(wide, plan), windows_of(by_wide, plan)
    is_open = np.ones(g.shape, np.bool_)
    for place in np.ndindex(*plan.window):
        tap = (..., *place, slice(None))
        is_smaller = np.less(windows[tap], r)  # not where a window holds NaN
        targets[tap] += g * np.greater(is_open, is_smaller)
        is_open &= is_smaller
    by_x = cut_padding(by_wide, x.shape[1:-1], plan)
    return (np.moveaxis(by_x, -1, 1) if is_first else by_x,)


VJPS: dict[str, tuple[Callable[..., Any] | None, Callable[..., Any]]] = {"max_pool": (None, _max_pool_back)}
