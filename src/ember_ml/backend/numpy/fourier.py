"""Fourier transforms, on NumPy, which keeps the precision of its input."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ember_ml.backend.transforms import check_norm, lengths_and_axes


def _one(native: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    def body(x: np.ndarray, n: int | None, axis: int, norm: str) -> np.ndarray:
        check_norm(norm)
        return native(x, n, axis, norm)

    return body


def _several(native: Callable[..., np.ndarray], halved: bool = False) -> Callable[..., np.ndarray]:
    def body(x: np.ndarray, s: Sequence[int] | None, axes: Sequence[int] | None, norm: str) -> Any:
        check_norm(norm)
        lengths, found = lengths_and_axes(x.shape, s, axes, halved)
        if found:
            return native(x, lengths, found, norm)
        if native not in (np.fft.fftn, np.fft.ifftn):
            raise ValueError("a real transform needs at least one axis")
        return x.astype(np.result_type(x.dtype, np.complex64))  # NumPy gives the input itself

    return body


fft = _one(np.fft.fft)
ifft = _one(np.fft.ifft)
rfft = _one(np.fft.rfft)
irfft = _one(np.fft.irfft)
fftn = _several(np.fft.fftn)
ifftn = _several(np.fft.ifftn)
rfftn = _several(np.fft.rfftn)
irfftn = _several(np.fft.irfftn, halved=True)
