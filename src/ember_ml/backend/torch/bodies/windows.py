"""Windows, on PyTorch: computed with its own tensors, since torch.compile cannot trace arrays of NumPy."""

from __future__ import annotations

from collections.abc import Callable

import torch

from ember_ml.backend.common.window_functions import float_dtype, window_weights


def _finish(weights: torch.Tensor, dtype: torch.dtype | None, device: str) -> torch.Tensor:
    float_dtype(dtype)  # raises where it is none
    return weights.to(torch.float32 if dtype is None else dtype).to(device)


def _make_fixed(shape: str) -> Callable[..., torch.Tensor]:
    def body(window_length: int, periodic: bool, dtype: torch.dtype | None, device: str) -> torch.Tensor:
        weights = window_weights(torch, shape, window_length, periodic)
        return _finish(weights, dtype, device)

    return body


def _make_adjustable(shape: str) -> Callable[..., torch.Tensor]:
    def body(
        window_length: int, parameter: float, periodic: bool, dtype: torch.dtype | None, device: str
    ) -> torch.Tensor:
        weights = window_weights(torch, shape, window_length, periodic, parameter)
        return _finish(weights, dtype, device)

    return body


hann_window = _make_fixed("hann")
hamming_window = _make_fixed("hamming")
blackman_window = _make_fixed("blackman")
bartlett_window = _make_fixed("bartlett")
kaiser_window = _make_adjustable("kaiser")
gaussian_window = _make_adjustable("gaussian")
