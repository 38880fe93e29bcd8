"""Losses on JAX, each one program."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from ember_ml.backend.common.axes import axis_of
from ember_ml.backend.common.shapes import check_classes
from ember_ml.backend.common.special import LEAST_PROBABILITY
from ember_ml.backend.jax.half_precision import narrow_as, widen
from ember_ml.backend.jax.host_transfer import device_of
from ember_ml.backend.jax.jitting import static
from ember_ml.backend.jax.tracing import values_are_read


def sparse_categorical_crossentropy(target: jax.Array, output: jax.Array, from_logits: bool, axis: int) -> jax.Array:
    axis = axis_of(axis, output.ndim)
    check_classes(target.shape, output.shape, axis)
    count = output.shape[axis]
    if not target.size:
        return jnp.zeros(target.shape, output.dtype)
    loss, low, high = _crossentropy(target, output, from_logits, axis)
    if values_are_read(low) and (low < 0 or high >= count):
        raise IndexError(f"index {low if low < 0 else high} is out of bounds for a dimension of size {count}")
    return loss


@static(2, 3)
def _crossentropy(target: jax.Array, output: jax.Array, from_logits: bool, axis: int) -> tuple[jax.Array, ...]:
    wide = widen(output)
    classes = jnp.expand_dims(jnp.clip(target, 0, output.shape[axis] - 1), axis)
    if device_of(output).startswith("cuda"):  # the gradient of indices is a scatter into a tensor of zeros there
        picked = jnp.sum(wide, axis, where=jax.lax.broadcasted_iota(classes.dtype, wide.shape, axis) == classes)
    else:
        picked = jnp.take_along_axis(wide, classes, axis).squeeze(axis)
    if from_logits:
        loss = jax.nn.logsumexp(wide, axis) - picked
    else:
        loss = -jnp.log(jnp.maximum(picked / jnp.sum(wide, axis), LEAST_PROBABILITY))
    return narrow_as(loss, output), jnp.min(target), jnp.max(target)
