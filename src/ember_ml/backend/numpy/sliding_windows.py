"""The windows of convolutions: as one array, without a copy, and as rows, block by block.

Tensors have their channels last.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ember_ml.backend.common.convolution import Sliding
from ember_ml.backend.numpy.cache_blocks import blocks

__all__ = ["cut_padding", "padded", "row_blocks", "weights_of", "windows_of"]

Array = np.ndarray[Any, Any]

_BLOCK = 1 << 19  # elements of the rows; measured: two thirds of the time of all rows at once


def padded(x: Array, sliding: Sliding) -> Array:
    """Return ``x`` with zeros around it."""
    if not sliding.is_padded:
        return x
    sizes = [before + n + after for n, (before, after) in zip(x.shape[1:-1], sliding.padding, strict=True)]
    wide = np.zeros((len(x), *sizes, x.shape[-1]), x.dtype)
    cut_padding(wide, x.shape[1:-1], sliding)[...] = x
    return wide


def cut_padding(wide: Array, sizes: tuple[int, ...], sliding: Sliding) -> Array:
    """Return what lies inside the padding, of these sizes, as a view."""
    if not sliding.is_padded:
        return wide
    inner = (slice(before, before + n) for n, (before, _) in zip(sizes, sliding.padding, strict=True))
    return wide[(slice(None), *inner)]


def windows_of(wide: Array, sliding: Sliding) -> Array:
    """Return the windows of a padded tensor, a view of shape (batch, results..., window..., channels)."""
    first, *along, last = wide.strides
    steps = [step * stride for step, stride in zip(along, sliding.strides, strict=True)]
    inner = [step * dilation for step, dilation in zip(along, sliding.dilations, strict=True)]
    shape = (len(wide), *sliding.results, *sliding.window, wide.shape[-1])
    return as_strided(wide, shape, (first, *steps, *inner, last))


def weights_of(kernel: Array) -> Array:
    """Return a kernel of one group as a matrix of (results, window * channels), in which a row is one result's.

    The weights of layers lie in memory in almost this order: copying them takes a third of the time of any other one.
    """
    return np.moveaxis(kernel, -1, 0).reshape(kernel.shape[-1], -1)


def row_blocks(windows: Array, sliding: Sliding) -> Iterator[tuple[tuple[slice, ...], Array]]:
    """Yield the slices of blocks of windows, and each block's windows as the rows of a matrix, in the same memory."""
    places = windows.shape[: 1 + len(sliding.results)]
    width = math.prod(windows.shape[len(places) :])
    if width == windows.shape[-1] and windows.flags.c_contiguous:  # a window of one element: there is nothing to copy
        yield (slice(None),), windows.reshape(-1, width)
        return
    most = max(_BLOCK // width, 1)
    memory = np.empty((min(most, math.prod(places)), width), windows.dtype)
    for block in blocks(places, most):
        part = windows[block]
        rows = memory[: part.size // width]
        rows.reshape(part.shape)[...] = part
        yield block, rows
