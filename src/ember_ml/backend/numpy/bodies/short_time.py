"""Frames of signals, on NumPy: views, which share the memory of the signal and cannot be written to."""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ember_ml.backend.common.axes import axis_of
from ember_ml.backend.common.signal import count_frames


def frame(x: np.ndarray, frame_length: int, hop_length: int, axis: int) -> np.ndarray:
    place = axis_of(axis, x.ndim)
    count = count_frames(x.shape[place], frame_length, hop_length)
    shape = (*x.shape[:place], count, frame_length, *x.shape[place + 1 :])
    step = x.strides[place]
    strides = (*x.strides[:place], hop_length * step, step, *x.strides[place + 1 :])
    return as_strided(x, shape, strides, writeable=False)
