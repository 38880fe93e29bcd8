"""Pooling, on PyTorch, whose functions take the channels second and pad both sides equally."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F

from ember_ml.backend.common.convolution import Sliding, is_channels_first, pooling
from ember_ml.backend.contract import ByDType
from ember_ml.backend.torch.channel_order import images_of, per_image, restore_layout, sides
from ember_ml.backend.torch.half_precision import in_float32
from ember_ml.backend.torch.unsigned import ordered
from ember_ml.core import dtypes as dt

_MOST_TERMS = 256  # torch 2.13: sums a window in one chain; 10,000 terms of float32 lose 3e-6 of their sum


def _max_pool(
    x: torch.Tensor,
    pool_size: int | Sequence[int],
    strides: int | Sequence[int] | None,
    padding: Any,
    data_format: str,
) -> torch.Tensor:
    plan, first = pooling(x.shape, pool_size, strides, padding, data_format), is_channels_first(data_format, x.ndim)
    images = images_of(x, first)
    even = _even(plan, images)
    if even is None:
        images, even = F.pad(images, sides(plan.padding), value=-math.inf), 0
    function = F.max_pool3d if images.ndim == 5 else F.max_pool2d
    result = function(images, per_image(plan.window, 1), per_image(plan.strides, 1), even)
    return restore_layout(result, x.ndim, first)


def _even(plan: Sliding, images: torch.Tensor) -> list[int] | None:
    """Return the padding if PyTorch accepts it."""
    # torch 2.13: as much after as before, at most half a window, and images of at least one window
    sizes = images.shape[-len(plan.window) :]
    dimensions = zip(plan.padding, plan.window, sizes, strict=True)
    if all(before == after <= window // 2 and window <= size for (before, after), window, size in dimensions):
        return per_image([before for before, _ in plan.padding], 0)
    return None


def _max_pool_integers(
    x: torch.Tensor,
    pool_size: int | Sequence[int],
    strides: int | Sequence[int] | None,
    padding: Any,
    data_format: str,
) -> torch.Tensor:
    # torch 2.11 on CUDA: no pooling of integers
    plan, first = pooling(x.shape, pool_size, strides, padding, data_format), is_channels_first(data_format, x.ndim)
    images = F.pad(images_of(x, first), sides(plan.padding), value=torch.iinfo(x.dtype).min)
    return restore_layout(_by_dimension(images, plan, torch.amax), x.ndim, first)


def _by_dimension(images: torch.Tensor, plan: Sliding, reduce: Callable[..., torch.Tensor]) -> torch.Tensor:
    """Reduce the windows along one dimension after the other."""
    for axis, (window, stride) in enumerate(zip(plan.window, plan.strides, strict=True), -len(plan.window)):
        images = reduce(images.unfold(axis, window, stride), -1)
    return images


_INTEGERS = (dt.int8, dt.int16, dt.int32, dt.int64, dt.uint8)
max_pool = ByDType(_max_pool, dict.fromkeys(_INTEGERS, _max_pool_integers) | ordered(_max_pool_integers))


def _average_pool(
    x: torch.Tensor,
    pool_size: int | Sequence[int],
    strides: int | Sequence[int] | None,
    padding: Any,
    data_format: str,
) -> torch.Tensor:
    plan, first = pooling(x.shape, pool_size, strides, padding, data_format), is_channels_first(data_format, x.ndim)
    images = images_of(x, first)
    even = _even(plan, images)
    function = F.avg_pool3d if images.ndim == 5 else F.avg_pool2d
    window, steps = per_image(plan.window, 1), per_image(plan.strides, 1)

    def sums(padded: torch.Tensor) -> torch.Tensor:
        if math.prod(plan.window) > _MOST_TERMS:
            return _by_dimension(padded, plan, torch.sum)
        return function(padded, window, steps, divisor_override=1)

    if even is not None and math.prod(plan.window) <= _MOST_TERMS:
        result = function(images, window, steps, even, count_include_pad=False)
    else:
        around = sides(plan.padding)
        counts = sums(F.pad(torch.ones_like(images[:1, :1]), around))
        result = sums(F.pad(images, around)) / counts
    return restore_layout(result, x.ndim, first)


average_pool = ByDType(_average_pool, in_float32(_average_pool))
