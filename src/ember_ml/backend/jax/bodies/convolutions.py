"""Convolutions, on JAX, by XLA's own, which takes all layouts, strides, dilations and groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from ember_ml.backend.common.convolution import (
    Convolution,
    Transposed,
    convolution,
    is_channels_first,
    transposed_convolution,
)
from ember_ml.backend.jax.half_precision import narrow_as, widen
from ember_ml.backend.jax.jitting import static

_SPATIAL = "DHW"


def conv(
    x: jax.Array,
    kernel: jax.Array,
    strides: int | Sequence[int],
    padding: Any,
    data_format: str,
    dilation_rate: int | Sequence[int],
) -> jax.Array:
    plan = convolution(x.shape, kernel.shape, strides, padding, data_format, dilation_rate)
    return _conv(x, kernel, plan, is_channels_first(data_format, x.ndim))


@static(2, 3)
def _conv(x: jax.Array, kernel: jax.Array, plan: Convolution, first: bool) -> jax.Array:
    sliding, groups = plan
    result = lax.conv_general_dilated(
        _accurate(x),
        _accurate(kernel),
        sliding.strides,
        sliding.padding,
        rhs_dilation=sliding.dilations,
        dimension_numbers=_layouts(x.ndim, first, "IO"),
        feature_group_count=groups,
        precision=lax.Precision.HIGHEST,
    )
    return narrow_as(result, x)


def conv_transpose(
    x: jax.Array,
    kernel: jax.Array,
    strides: int | Sequence[int],
    padding: Any,
    output_padding: int | Sequence[int] | None,
    data_format: str,
    dilation_rate: int | Sequence[int],
) -> jax.Array:
    plan = transposed_convolution(x.shape, kernel.shape, strides, padding, output_padding, data_format, dilation_rate)
    return _conv_transpose(x, kernel, plan, is_channels_first(data_format, x.ndim))


@static(2, 3)
def _conv_transpose(x: jax.Array, kernel: jax.Array, plan: Transposed, first: bool) -> jax.Array:
    spatial = tuple(range(x.ndim - 2))
    ends = [(k - 1) * d for k, d in zip(kernel.shape, plan.dilations, strict=False)]
    result = lax.conv_general_dilated(
        _accurate(x),
        jnp.flip(_accurate(kernel), spatial),
        (1,) * len(spatial),
        [(end - before, end - after) for end, (before, after) in zip(ends, plan.crops, strict=True)],
        lhs_dilation=plan.strides,
        rhs_dilation=plan.dilations,
        dimension_numbers=_layouts(x.ndim, first, "OI"),
        precision=lax.Precision.HIGHEST,
    )
    return narrow_as(result, x)


def _layouts(ndim: int, first: bool, channels: str) -> tuple[str, str, str]:
    """Return the layouts of images, kernel and result, as XLA names the dimensions."""
    spatial = _SPATIAL[5 - ndim :]
    images = f"NC{spatial}" if first else f"N{spatial}C"
    return images, spatial + channels, images


def _accurate(x: jax.Array) -> jax.Array:
    """Return ``x`` in float32 where the device would round the sums of half precision."""
    return widen(x) if jax.default_backend() == "cpu" else x
