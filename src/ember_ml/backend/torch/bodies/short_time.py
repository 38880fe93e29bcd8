"""Frames of signals, on PyTorch: views, which share the memory of the signal."""

from __future__ import annotations

import torch

from ember_ml.backend.common.axes import axis_of
from ember_ml.backend.common.signal import count_frames


def frame(x: torch.Tensor, frame_length: int, hop_length: int, axis: int) -> torch.Tensor:
    place = axis_of(axis, x.ndim)
    count_frames(x.shape[place], frame_length, hop_length)
    return x.unfold(place, frame_length, hop_length).movedim(-1, place + 1)
