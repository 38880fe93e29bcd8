"""Fourier transforms, on NumPy."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ember_ml.backend.common.signal import check_norm, lengths_and_axes

_REAL_IN = (np.fft.rfft, np.fft.rfftn)
_HALF_IN = (np.fft.irfft, np.fft.irfftn)
_INVERSE = (np.fft.ifft, np.fft.ifftn, *_HALF_IN)
_SINGLE = (np.float32, np.complex64)
_FEW = 1024
_OTHER = {"backward": "forward", "forward": "backward"}


def _one(native: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    def body(x: np.ndarray, n: int | None, axis: int, norm: str) -> np.ndarray:
        check_norm(norm)
        if n is not None and not x.shape[axis] and native in _HALF_IN:
            return _zeros(x, (*x.shape[: axis % x.ndim], n, *x.shape[axis % x.ndim + 1 :]))
        if x.size < _FEW or x.dtype not in _SINGLE:
            return native(x, n, axis, norm)
        own = 2 * (x.shape[axis] - 1) if native in _HALF_IN else x.shape[axis]
        length = own if n is None else n
        return _single(native, x, length, axis, norm, length)

    return body


def _several(native: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    def body(x: np.ndarray, s: Sequence[int] | None, axes: Sequence[int] | None, norm: str) -> Any:
        check_norm(norm)
        lengths, found = lengths_and_axes(x.shape, s, axes, native in _HALF_IN)
        if not found:
            if native not in (np.fft.fftn, np.fft.ifftn):
                raise ValueError("a real transform needs at least one axis")
            return x.astype(np.result_type(x.dtype, np.complex64))  # NumPy 2.4: returns the input itself
        if native in _HALF_IN and not all(x.shape[axis] for axis in found):
            shape = list(x.shape)
            for axis, length in zip(found, lengths, strict=True):
                shape[axis] = length
            return _zeros(x, tuple(shape))
        if x.size < _FEW or x.dtype not in _SINGLE:
            return native(x, lengths, found, norm)
        return _single(native, x, lengths, found, norm, math.prod(lengths))

    return body


def _zeros(x: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    # NumPy 2.4: returns uninitialized memory for an empty spectrum
    return np.zeros(shape, np.result_type(x.dtype, np.complex64).type(0).real.dtype)


def _single(native: Callable[..., Any], x: np.ndarray, n: Any, axis: Any, norm: str, elements: int) -> np.ndarray:
    """Transform in single precision: make the input complex, ask for a factor and undo it."""
    # NumPy 2.4: computes single precision in double precision, in two to four times the time, for real input to a
    # complex transform, and where the factor is the integer 1, which decides the dtype
    if x.dtype == np.float32 and native not in _REAL_IN:
        x = x.astype(np.complex64)
    if norm != ("forward" if native in _INVERSE else "backward"):
        return native(x, n, axis, norm)
    result = native(x, n, axis, _OTHER[norm])
    if result.dtype.kind == "c":  # by parts: the complex product of an infinity is NaN
        parts = (result.view(np.float32),) if result.flags.c_contiguous else (result.real, result.imag)
    else:
        parts = (result,)
    for part in parts:
        part *= np.float32(elements)
    return result


fft = _one(np.fft.fft)
ifft = _one(np.fft.ifft)
rfft = _one(np.fft.rfft)
irfft = _one(np.fft.irfft)
fftn = _several(np.fft.fftn)
ifftn = _several(np.fft.ifftn)
rfftn = _several(np.fft.rfftn)
irfftn = _several(np.fft.irfftn)
