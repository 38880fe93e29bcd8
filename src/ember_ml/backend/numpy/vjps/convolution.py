"""VJPs of convolutions, in NumPy itself. The interface is that of ``basic.py``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ember_ml.backend.common.convolution import Sliding, convolution, is_channels_first
from ember_ml.backend.numpy.sliding_windows import cut_padding, padded, row_blocks, weights_of, windows_of
from ember_ml.backend.numpy.vjps.basic import Wanted

__all__ = ["VJPS"]

Array = np.ndarray[Any, Any]


def _conv_back(
    g: Array,
    wanted: Wanted,
    x: Array,
    kernel: Array,
    strides: Any,
    padding: Any,
    data_format: str,
    dilation_rate: Any,
) -> Any:
    sliding, groups = convolution(x.shape, kernel.shape, strides, padding, data_format, dilation_rate)
    if groups > 1 or not g.size:
        return NotImplemented
    is_first = is_channels_first(data_format, x.ndim)
    if is_first:
        x, g = np.moveaxis(x, 1, -1), np.moveaxis(g, 1, -1)
    by_x, by_kernel = _products_back(np.ascontiguousarray(g), wanted, x, kernel, sliding)
    return np.moveaxis(by_x, -1, 1) if is_first and by_x is not None else by_x, by_kernel


def _products_back(
    g: Array, wanted: Wanted, x: Array, kernel: Array, sliding: Sliding
) -> tuple[Array | None, Array | None]:
    """Return the gradients that are wanted, by ``x`` and by the kernel, block by block of the windows.

    The windows are copied once more: keeping them would take the memory of ``x`` for each element of a window.
    """
    outside = kernel.shape[-1]
    wide, weights = padded(x, sliding), weights_of(kernel)
    taps = weights.reshape(outside, *kernel.shape[:-1])
    by_wide = np.zeros(wide.shape, g.dtype) if wanted[0] else None
    by_weights = np.zeros(weights.shape, g.dtype) if wanted[1] else None
    targets = None if by_wide is None else windows_of(by_wide, sliding)
    for block, rows in row_blocks(windows_of(wide, sliding), sliding):
        own = g[block]
        slopes = own.reshape(-1, outside)
        if by_weights is not None:
            by_weights += slopes.T.dot(rows)
        if targets is not None:
            target = targets[block]
            for place in np.ndindex(*sliding.window):  # elements of two windows at one place are never the same
                product = slopes.dot(taps[(slice(None), *place)])
                target[(..., *place, slice(None))] += product.reshape(*own.shape[:-1], -1)
    by_x = None if by_wide is None else cut_padding(by_wide, x.shape[1:-1], sliding)
    return by_x, None if by_weights is None else np.moveaxis(by_weights.reshape(taps.shape), 0, -1)


VJPS: dict[str, tuple[Callable[..., Any] | None, Callable[..., Any]]] = {"conv": (None, _conv_back)}
