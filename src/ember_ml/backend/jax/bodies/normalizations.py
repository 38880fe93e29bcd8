"""Normalizations on JAX, each one program; half precision is computed in float32."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from ember_ml.backend.common.axes import axes_of, axis_of
from ember_ml.backend.common.normalization import channel_axis, spread_shape
from ember_ml.backend.jax.half_precision import static_in_float32

Parameter = jax.Array | None


def _broadcast(parameter: Parameter, name: str, x: jax.Array, axes: tuple[int, ...]) -> Any:
    return None if parameter is None else parameter.reshape(spread_shape(parameter, name, x.shape, axes))


def _affine(x: jax.Array, factor: Parameter, offset: Parameter) -> jax.Array:
    x = x if factor is None else x * factor
    return x if offset is None else x + offset


def _at_unit_size(x: jax.Array, axes: tuple[int, ...], epsilon: float) -> jax.Array:
    """Divide ``x`` by the root of its mean square over ``axes``."""
    return x * lax.rsqrt(jnp.mean(jnp.square(x), axes, keepdims=True) + epsilon)


def layer_normalization(x: jax.Array, gamma: Parameter, beta: Parameter, axis: Any, epsilon: float) -> jax.Array:
    return _layer_normalization(x, gamma, beta, axes_of(axis, x.ndim), epsilon)


@static_in_float32(3, 4)
def _layer_normalization(
    x: jax.Array, gamma: Parameter, beta: Parameter, axes: tuple[int, ...], epsilon: float
) -> jax.Array:
    factor, offset = _broadcast(gamma, "gamma", x, axes), _broadcast(beta, "beta", x, axes)
    return _affine(_at_unit_size(x - jnp.mean(x, axes, keepdims=True), axes, epsilon), factor, offset)


def rms_normalization(x: jax.Array, scale: Parameter, axis: Any, epsilon: float) -> jax.Array:
    return _rms_normalization(x, scale, axes_of(axis, x.ndim), epsilon)


@static_in_float32(2, 3)
def _rms_normalization(x: jax.Array, scale: Parameter, axes: tuple[int, ...], epsilon: float) -> jax.Array:
    return _affine(_at_unit_size(x, axes, epsilon), _broadcast(scale, "scale", x, axes), None)


@static_in_float32(3, 6)
def batch_normalization(
    x: jax.Array, mean: jax.Array, variance: jax.Array, axis: int, offset: Parameter, scale: Parameter, epsilon: float
) -> jax.Array:
    axes = (axis_of(axis, x.ndim),)
    factor = lax.rsqrt(_broadcast(variance, "variance", x, axes) + epsilon)
    factor = factor if scale is None else factor * _broadcast(scale, "scale", x, axes)
    return _affine(x - _broadcast(mean, "mean", x, axes), factor, _broadcast(offset, "offset", x, axes))


@static_in_float32(1, 4)
def moments_normalization(
    x: jax.Array, axis: int, offset: Parameter, scale: Parameter, epsilon: float
) -> tuple[jax.Array, ...]:
    place = axis_of(axis, x.ndim)
    axes = tuple(i for i in range(x.ndim) if i != place)
    mean = jnp.mean(x, axes, keepdims=True)
    deviation = x - mean
    variance = jnp.mean(jnp.square(deviation), axes, keepdims=True)
    factor = lax.rsqrt(variance + epsilon)
    factor = factor if scale is None else factor * _broadcast(scale, "scale", x, (place,))
    result = _affine(deviation, factor, _broadcast(offset, "offset", x, (place,)))
    return result, *(lax.stop_gradient(part.reshape(x.shape[place])) for part in (mean, variance))


@static_in_float32(1, 4, 5)
def group_normalization(
    x: jax.Array, groups: int, gamma: Parameter, beta: Parameter, axis: int, epsilon: float
) -> jax.Array:
    place = channel_axis(x.shape, groups, axis)
    grouped = x.reshape(*x.shape[:place], groups, x.shape[place] // groups, *x.shape[place + 1 :])
    axes = tuple(i for i in range(1, grouped.ndim) if i != place)
    result = _at_unit_size(grouped - jnp.mean(grouped, axes, keepdims=True), axes, epsilon).reshape(x.shape)
    return _affine(result, _broadcast(gamma, "gamma", x, (place,)), _broadcast(beta, "beta", x, (place,)))
