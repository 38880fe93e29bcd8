"""Frames of signals, on JAX."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from ember_ml.backend.common.axes import axis_of
from ember_ml.backend.common.signal import count_frames


def frame(x: jax.Array, frame_length: int, hop_length: int, axis: int) -> jax.Array:
    place = axis_of(axis, x.ndim)
    count = count_frames(x.shape[place], frame_length, hop_length)
    return jnp.take(x, np.arange(count)[:, None] * hop_length + np.arange(frame_length), axis=place)
