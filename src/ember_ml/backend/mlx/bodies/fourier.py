"""Fourier transforms, on MLX, in single precision only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import mlx.core as mx

from ember_ml.backend.common.signal import check_norm, lengths_and_axes
from ember_ml.backend.contract import ByDType
from ember_ml.core import dtypes as dt
from ember_ml.errors import UnsupportedDType


def _refuse_double(*args: Any) -> Any:
    # MLX 0.32: silently returns complex64
    raise UnsupportedDType(
        "MLX has no complex128, so it cannot transform float64; cast to float32, or use another backend"
    )


def _one(native: Callable[..., mx.array]) -> ByDType:
    def body(x: mx.array, n: int | None, axis: int, norm: str) -> mx.array:
        check_norm(norm)
        if not -x.ndim <= axis < x.ndim:
            raise IndexError(f"axis {axis} is out of range for a {x.ndim}-D tensor")
        return native(x, n, axis, norm)

    return ByDType(body, {dt.float64: _refuse_double})


def _several(native: Callable[..., mx.array], halved: bool = False) -> ByDType:
    def body(x: mx.array, s: Sequence[int] | None, axes: Sequence[int] | None, norm: str) -> mx.array:
        check_norm(norm)
        lengths, found = lengths_and_axes(x.shape, s, axes, halved)
        if found:
            return native(x, lengths, found, norm)
        if native not in (mx.fft.fftn, mx.fft.ifftn):
            raise ValueError("a real transform needs at least one axis")
        return x.astype(mx.complex64)  # MLX 0.32: returns or refuses the input

    return ByDType(body, {dt.float64: _refuse_double})


fft = _one(mx.fft.fft)
ifft = _one(mx.fft.ifft)
rfft = _one(mx.fft.rfft)
irfft = _one(mx.fft.irfft)
fftn = _several(mx.fft.fftn)
ifftn = _several(mx.fft.ifftn)
rfftn = _several(mx.fft.rfftn)
irfftn = _several(mx.fft.irfftn, halved=True)
