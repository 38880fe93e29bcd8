"""VJPs of convolutions, in NumPy itself. The interface is that of ``basic.py``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ember_ml.backend.common.convolution import Sliding, convolution, is_channels_first
from ember_ml.backend.numpy.sliding_windows import cut_padding, pad_with, row_blocks, windows_of
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
    by_x, by_kernel = _products_back(np.ascontiguousarray(g), x, kernel, sliding, bool(wanted[0]))
    return np.moveaxis(by_x, -1, 1) if is_first and by_x is not None else by_x, wanted[1] and by_kernel


def _products_back(
    g: Array, x: Array, kernel: Array, sliding: Sliding, is_x_wanted: bool
) -> tuple[Array | None, Array]:
    """Return the gradients by ``x``, if it is wanted, and by the kernel, block by block of the windows.

    The windows are copied once more: keeping them would take the memory of ``x`` for each element of a window.
    """
    outside = kernel.shape[-1]
    wide = pad_with(0.0, x, sliding)
    by_kernel: Any = None
    by_wide = np.zeros(wide.shape, g.dtype) if is_x_wanted else None
    targets = None if by_wide is None else windows_of(by_wide, sliding)
    for block, rows in row_blocks(windows_of(wide, sliding), sliding):
        own = g[block]
        slopes = own.reshape(-1, outside)
        product = rows.T.dot(slopes)
        by_kernel = product if by_kernel is None else np.add(by_kernel, product, out=by_kernel)
        if targets is not None:
            target = targets[block]
            for place in np.ndindex(*sliding.window):  # elements of two windows at one place are never the same
                target[(..., *place, slice(None))] += slopes.dot(kernel[place].T).reshape(*own.shape[:-1], -1)
    by_x = None if by_wide is None else cut_padding(by_wide, x.shape[1:-1], sliding)
    return by_x, by_kernel.reshape(kernel.shape)


VJPS: dict[str, tuple[Callable[..., Any] | None, Callable[..., Any]]] = {"conv": (None, _conv_back)}
