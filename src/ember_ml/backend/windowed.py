"""Convolution as a product of windows, written once for everything that has NumPy's names.

``xp`` is ``ember_ml.ops`` or a library; tensors have their channels last.
"""

from __future__ import annotations

import math
from functools import reduce
from typing import Any

from ember_ml.backend.sliding import Convolution

__all__ = ["windowed_convolution"]


def windowed_convolution(xp: Any, x: Any, kernel: Any, plan: Convolution) -> Any:
    """The convolution: what the window meets at each of its places, times the weights."""
    sliding, groups = plan
    if sliding.is_padded:
        x = xp.pad(x, sliding.pairs())
    inside, outside = kernel.shape[-2:]
    if inside == 1 and outside > groups > 1:
        x = xp.repeat(x, outside // groups, axis=-1)
    parts = [x[cut] for cut in sliding.cuts()]
    shape = (x.shape[0], *sliding.results)
    if groups == 1:
        weights = xp.reshape(kernel, (len(parts) * inside, outside))
        products = xp.matmul(_rows(xp, parts, (math.prod(shape),)), weights)
    elif inside == 1:
        weights = xp.reshape(kernel, (len(parts), outside))
        products = reduce(xp.add, (xp.multiply(part, weights[i]) for i, part in enumerate(parts)))
    else:
        weights = xp.reshape(kernel, (len(parts), inside, groups, outside // groups))
        weights = xp.reshape(xp.moveaxis(weights, 2, 0), (groups, len(parts) * inside, outside // groups))
        parts = [xp.reshape(part, (math.prod(shape), groups, inside)) for part in parts]
        rows = _rows(xp, parts, (math.prod(shape), groups))
        products = xp.moveaxis(xp.matmul(xp.moveaxis(rows, 1, 0), weights), 0, 1)
    return xp.reshape(products, (*shape, outside))


def _rows(xp: Any, parts: list[Any], shape: tuple[int, ...]) -> Any:
    """The windows, each as one row."""
    joined = parts[0] if len(parts) == 1 else xp.concatenate(parts, axis=-1)
    return xp.reshape(joined, (*shape, joined.shape[-1]))
