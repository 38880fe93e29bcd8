"""Check the arguments of image ops, and compute their weights and places, for every backend."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from ember_ml.backend.host_arrays import host_dtypes
from ember_ml.core.dtypes import as_dtype

__all__ = [
    "FILL_MODES",
    "aspect_margins",
    "bell_weights",
    "check_choice",
    "image_axes",
    "nearest_places",
    "pair",
    "resize_weights",
    "sample_weights",
]

FILL_MODES = ("constant", "nearest", "wrap", "mirror", "reflect")
_METHODS = {"bilinear": "linear", "trilinear": "linear", "bicubic": "cubic", "tricubic": "cubic"}
_KERNELS = ("linear", "cubic", "lanczos3", "lanczos5")
_LEAST_TOTAL = 1e-4
"""Weights that add up to less belong to a place outside of the image: each kernel has more on any inner place."""


def check_choice(value: Any, choices: Sequence[str], name: str) -> str:
    """Return ``value`` if it is one of the choices; ``ValueError`` that lists them otherwise."""
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, not {value!r}")
    return value


def image_axes(shape: Sequence[int], data_format: str) -> tuple[int, int, int]:
    """Return the axes of height, width and channels of one image or of a batch, counted from the front."""
    check_choice(data_format, ("channels_last", "channels_first"), "data_format")
    ndim = len(shape)
    if ndim not in (3, 4):
        layout = "height, width, channels" if data_format == "channels_last" else "channels, height, width"
        raise ValueError(f"images are ({layout}), with a batch axis before at will, and not of shape {tuple(shape)}")
    first = ndim - 3
    return (first, first + 1, first + 2) if data_format == "channels_last" else (first + 1, first + 2, first)


def pair(value: Any, name: str, least: int = 1) -> tuple[int, int]:
    """Return two integers, for height and width; a single one stands for both."""
    try:
        found = [operator.index(item) for item in value] if hasattr(value, "__len__") else [operator.index(value)] * 2
    except TypeError as error:
        raise TypeError(f"{name} is an integer or a pair of integers, not {value!r}") from error
    if len(found) != 2 or min(found) < least:
        raise ValueError(f"{name} is a pair of integers from {least} on, not {value!r}")
    return found[0], found[1]


def aspect_margins(size: tuple[int, int], target: tuple[int, int], crop: bool) -> tuple[tuple[int, int], ...]:
    """Return how much to cut off or to add (before, after) along height and width for the target's aspect ratio."""
    height, width = size
    like = width * target[0] // target[1], height * target[1] // target[0]
    wanted = [max(min(n, m), 1) if crop else max(n, m) for n, m in zip(size, like, strict=True)]
    totals = [abs(m - n) for n, m in zip(size, wanted, strict=True)]
    return tuple((total // 2, total - total // 2) for total in totals)


def nearest_places(inputs: int, outputs: int) -> np.ndarray:
    """Return the element whose area holds the centre of each element of the result."""
    # in integers, so that no product is rounded to the element below
    return (2 * np.arange(outputs, dtype=np.int64) + 1) * inputs // (2 * outputs)


def resize_weights(dtype: str, inputs: int, outputs: int, method: str, antialias: bool) -> np.ndarray:
    """Return the matrix that resizes a row of ``inputs`` elements, computed in double precision and rounded once."""
    places, elements = np.arange(outputs, dtype=np.float64)[:, None], np.arange(inputs, dtype=np.float64)
    weights = sample_weights(np, places, elements, outputs / inputs, 0.0, method, antialias)
    return weights.astype(host_dtypes[as_dtype(dtype)])


def sample_weights(
    xp: Any, places: Any, elements: Any, scale: Any, translation: Any, method: str, antialias: bool
) -> Any:
    """Return the weight of each element of a row for each place of the scaled and translated one.

    ``places`` are a column of the numbers from 0, ``elements`` a row of them. An element has its centre at its number
    plus one half, and place p shows what was at ``(p + 1/2 - translation) / scale``. Where that is outside of the row
    the weights are 0.
    """
    kernel = check_choice(_METHODS.get(method, method), _KERNELS, "the method")
    centres = (places + 0.5 - translation) / scale - 0.5
    distances, length = xp.abs(centres - elements), elements.shape[-1]
    if antialias:
        distances = distances / xp.maximum(1.0 / scale, 1.0)
    weights = _weigh(xp, kernel, distances)
    total = xp.sum(weights, axis=-1, keepdims=True)
    is_inside = xp.logical_and(xp.abs(centres - (length - 1) / 2) <= length / 2, xp.abs(total) > _LEAST_TOTAL)
    return xp.where(is_inside, weights / xp.where(is_inside, total, 1.0), 0.0)


def _weigh(xp: Any, kernel: str, distances: Any) -> Any:
    if kernel == "linear":
        return xp.maximum(1.0 - distances, 0.0)
    if kernel == "cubic":  # of Keys, with a = -1/2
        near = (1.5 * distances - 2.5) * distances * distances + 1.0
        far = ((-0.5 * distances + 2.5) * distances - 4.0) * distances + 2.0
        return xp.where(distances < 1.0, near, xp.where(distances < 2.0, far, 0.0))
    radius = float(kernel.removeprefix("lanczos"))
    return xp.where(distances < radius, xp.sinc(distances) * xp.sinc(distances / radius), 0.0)


def bell_weights(length: int, sigma: float) -> list[float]:
    """Return the weights of a Gaussian, which add up to 1."""
    if not sigma > 0:
        raise ValueError(f"sigma must be positive, not {sigma}")
    middle = (length - 1) / 2
    weights = [math.exp(-0.5 * ((i - middle) / sigma) ** 2) for i in range(length)]
    total = math.fsum(weights)
    if not total:
        raise ValueError(f"a Gaussian with sigma={sigma} is 0 at all of {length} elements; take an odd number of them")
    return [weight / total for weight in weights]
