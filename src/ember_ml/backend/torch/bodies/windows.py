"""Windows, on PyTorch: made of its own tensors, since it cannot trace those that come from NumPy."""

from __future__ import annotations

from collections.abc import Callable

import torch

from ember_ml.backend.common.window_functions import float_dtype, window_weights
from ember_ml.backend.torch.host_transfer import dtypes


def _fixed(shape: str) -> Callable[..., torch.Tensor]:
    def body(window_length: int, periodic: bool, dtype: torch.dtype | None, device: str) -> torch.Tensor:
        weights = window_weights(torch, shape, window_length, periodic)
        return weights.to(dtypes[float_dtype(dtype)]).to(device)

    return body


def _adjustable(shape: str) -> Callable[..., torch.Tensor]:
    def body(
        window_length: int, parameter: float, periodic: bool, dtype: torch.dtype | None, device: str
    ) -> torch.Tensor:
        weights = window_weights(torch, shape, window_length, periodic, parameter)
        return weights.to(dtypes[float_dtype(dtype)]).to(device)

    return body


hann_window = _fixed("hann")
hamming_window = _fixed("hamming")
blackman_window = _fixed("blackman")
bartlett_window = _fixed("bartlett")
kaiser_window = _adjustable("kaiser")
gaussian_window = _adjustable("gaussian")
