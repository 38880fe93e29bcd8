"""Frames of signals, on MLX."""

from __future__ import annotations

import math

import mlx.core as mx

from ember_ml.backend.common.axes import axis_of
from ember_ml.backend.common.signal import count_frames


def frame(x: mx.array, frame_length: int, hop_length: int, axis: int) -> mx.array:
    place = axis_of(axis, x.ndim)
    before, samples, after = math.prod(x.shape[:place]), x.shape[place], math.prod(x.shape[place + 1 :])
    count = count_frames(samples, frame_length, hop_length)
    shape = (*x.shape[:place], count, frame_length, *x.shape[place + 1 :])
    if not before * after:
        return mx.zeros(shape, x.dtype)
    strides = (samples * after, hop_length * after, after, 1)
    frames = mx.as_strided(mx.contiguous(x), (before, count, frame_length, after), strides)
    return frames.reshape(shape)
