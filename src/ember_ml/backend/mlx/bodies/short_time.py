"""Frames of signals, on MLX."""

from __future__ import annotations

import math

import mlx.core as mx

from ember_ml.backend.common.axes import axis_of
from ember_ml.backend.common.signal import count_frames
from ember_ml.backend.mlx.graph_probe import is_vectorizing
from ember_ml.backend.mlx.vmap_rules import mappable


def frame(x: mx.array, frame_length: int, hop_length: int, axis: int) -> mx.array:
    place = axis_of(axis, x.ndim)
    before, samples, after = math.prod(x.shape[:place]), x.shape[place], math.prod(x.shape[place + 1 :])
    count = count_frames(samples, frame_length, hop_length)
    shape = (*x.shape[:place], count, frame_length, *x.shape[place + 1 :])
    if not before * after:
        return mx.zeros(shape, x.dtype)
    if is_vectorizing():  # MLX 0.32: no vmap of as_strided
        return mappable(mx.take(x, mx.arange(count)[:, None] * hop_length + mx.arange(frame_length), axis=place))
    strides = (samples * after, hop_length * after, after, 1)
    frames = mx.as_strided(mx.contiguous(x), (before, count, frame_length, after), strides)
    return frames.reshape(shape)
