"""Signals: frames, short-time transforms and convolutions, from their definitions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.signal
from hypothesis import strategies as st

from tests.reference import arrays
from tests.reference.spec import spec

__all__ = ["filters", "frames", "mel_filters", "overlapped", "scipy_transform", "transform", "window"]

filters: Any = scipy.signal


def window(name: str, length: int, periodic: bool, parameter: float | None = None) -> np.ndarray:
    """SciPy's window of that name, in double precision."""
    description = name if parameter is None else (name, parameter)
    return scipy.signal.get_window(description, length, fftbins=periodic)


def frames(x: np.ndarray, frame_length: int, hop_length: int, axis: int = -1) -> np.ndarray:
    """The pieces of a signal, one by one."""
    axis %= x.ndim
    starts = range(0, x.shape[axis] - frame_length + 1, hop_length)
    return np.stack([np.take(x, range(start, start + frame_length), axis) for start in starts], axis)


def overlapped(x: np.ndarray, hop_length: int, axis: int = -1) -> np.ndarray:
    """The sum of frames, one after the other."""
    axis %= x.ndim - 1
    rows = np.moveaxis(x, (axis, axis + 1), (0, 1))
    count, length = rows.shape[:2]
    total = np.zeros(((count - 1) * hop_length + length, *rows.shape[2:]), rows.dtype)
    for i in range(count):
        total[i * hop_length : i * hop_length + length] += rows[i]
    return np.moveaxis(total, 0, axis)


def _turns(n: int, bins: int) -> np.ndarray:
    """The matrix of the Fourier transform; products of indices are reduced first, so that angles are exact."""
    angles = np.longdouble(2) * np.arccos(np.longdouble(-1)) * (np.outer(np.arange(n), np.arange(bins)) % n) / n
    return np.cos(angles) - 1j * np.sin(angles)


def transform(
    x: np.ndarray,
    frame_length: int,
    hop_length: int,
    window: np.ndarray,
    center: bool = False,
    pad_mode: str = "reflect",
) -> np.ndarray:
    """The short-time Fourier transform, as a product of matrices."""
    return _windowed(x, frame_length, hop_length, window, center, pad_mode) @ _turns(
        frame_length, _bins(x, frame_length)
    )


def _bins(x: np.ndarray, n: int) -> int:
    return n if x.dtype.kind == "c" else n // 2 + 1


def _windowed(x: np.ndarray, n: int, hop: int, window: np.ndarray, center: bool, pad_mode: str) -> np.ndarray:
    if center:
        x = np.pad(x, [(0, 0)] * (x.ndim - 1) + [(n // 2, n // 2)], mode=pad_mode)  # type: ignore[call-overload]
    before = (n - len(window)) // 2
    return frames(x, n, hop) * np.pad(window, (before, n - len(window) - before))


def scipy_transform(x: np.ndarray, length: int, hop: int, window: np.ndarray) -> np.ndarray:
    """SciPy's short-time transform without padding, for hops of at most a frame; it divides by the window's sum."""
    options: Any = {"nperseg": length, "noverlap": length - hop, "boundary": None, "padded": False}
    _, _, found = scipy.signal.stft(x, window=window, **options)
    return np.moveaxis(found, -1, -2) * window.sum()


def mel_filters(
    filters: int, bins: int, rate: float, low: float, high: float, slaney: bool, equal_areas: bool
) -> np.ndarray:
    """Each triangle by interpolation between its three corners."""

    def mel(f: float) -> float:
        if not slaney:
            return 2595.0 * math.log10(1.0 + f / 700.0)
        return f / (200.0 / 3.0) if f < 1000.0 else 15.0 + math.log(f / 1000.0) / (math.log(6.4) / 27.0)

    # the inverse of the scale by bisection, so that its formula is not written down twice
    def hertz(m: float) -> float:
        lower, upper = 0.0, rate
        for _ in range(200):
            middle = (lower + upper) / 2
            lower, upper = (middle, upper) if mel(middle) < m else (lower, middle)
        return lower

    corners = [hertz(m) for m in np.linspace(mel(low), mel(high), filters + 2)]
    places = np.linspace(0.0, rate / 2, bins)
    columns = [np.interp(places, corners[i : i + 3], [0.0, 1.0, 0.0]) for i in range(filters)]
    if equal_areas:
        columns = [column * 2 / (corners[i + 2] - corners[i]) for i, column in enumerate(columns)]
    return np.stack(columns, -1)


def _signal(draw: st.DrawFn, dtype: str, least: int, **limits: Any) -> np.ndarray:
    shape = (*draw(st.lists(st.integers(1, 3), max_size=2)), draw(st.integers(least, least + 9)))
    return draw(arrays(dtype, shape, **limits))


def _framing(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    length = draw(st.integers(1, 6))
    x = _signal(draw, dtype, length)
    axis = draw(st.integers(-x.ndim, x.ndim - 1))
    x = np.moveaxis(x, -1, axis)
    return {"x": x, "frame_length": length, "hop_length": draw(st.integers(1, 7)), "axis": axis}


spec("frame", _framing, frames, 0)


def _overlapping(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    shape = (*draw(st.lists(st.integers(1, 3), max_size=1)), *draw(st.tuples(st.integers(1, 6), st.integers(1, 6))))
    x = draw(arrays(dtype, shape, finite=True, low=-100, high=100))
    axis = draw(st.integers(1 - x.ndim, x.ndim - 2))
    place = axis % (x.ndim - 1)
    x = np.moveaxis(x, (-2, -1), (place, place + 1))
    return {"x": x, "hop_length": draw(st.integers(1, 7)), "axis": axis}


spec("overlap_add", _overlapping, overlapped, 8, lambda x, **options: overlapped(np.abs(x), **options))


def _transforming(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    length = draw(st.integers(1, 12))
    x = _signal(draw, dtype, length, finite=True, low=-100, high=100)
    weights = draw(arrays(dtype, (draw(st.integers(1, length)),), finite=True, low=0, high=2))
    return {
        "x": x,
        "frame_length": length,
        "hop_length": draw(st.integers(1, 5)),
        "window": weights,
        "center": draw(st.booleans()),
        "pad_mode": draw(st.sampled_from(("reflect", "constant", "edge", "symmetric", "wrap"))),
    }


def _float(x: np.ndarray) -> np.ndarray:
    return x if x.dtype.kind in "fc" else x.astype(np.longdouble)


def _transformed(x: np.ndarray, window: np.ndarray, **options: Any) -> np.ndarray:
    return transform(_float(x), window=_float(window), **options)


def _size(
    x: np.ndarray, window: np.ndarray, frame_length: int, hop_length: int, center: bool, pad_mode: str
) -> np.ndarray:
    """The sum of the magnitudes of the terms, for each bin."""
    terms = _windowed(np.abs(_float(x)), frame_length, hop_length, np.abs(_float(window)), center, pad_mode)
    return np.repeat(terms.sum(-1, keepdims=True), _bins(x, frame_length), -1)


spec("stft", _transforming, _transformed, 8, _size)
spec(
    "spectrogram",
    _transforming,
    lambda **options: np.abs(_transformed(**options)) ** 2,
    32,
    lambda **options: _size(**options) ** 2,
)


def _pair(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    ndim = draw(st.integers(1, 3))
    sides = st.tuples(*[st.integers(1, 5 if ndim > 1 else 9)] * ndim)
    first, second = draw(sides), draw(sides)
    if draw(st.booleans()):
        first = tuple(map(max, first, second))
    nested = all(map(int.__ge__, first, second)) or all(map(int.__le__, first, second))
    limits: dict[str, Any] = {"finite": True, "low": -100, "high": 100}
    return {
        "x": draw(arrays(dtype, first, **limits)),
        "y": draw(arrays(dtype, second, **limits)),
        "mode": draw(st.sampled_from(("full", "same", "valid") if nested else ("full", "same"))),
    }


def _convolved(x: np.ndarray, y: np.ndarray, mode: str) -> np.ndarray:
    """Each element of one times the other, moved; integers wrap around."""
    total = np.zeros([m + n - 1 for m, n in zip(x.shape, y.shape, strict=True)], np.result_type(x, y))
    for place in np.ndindex(y.shape):
        total[tuple(slice(p, p + n) for p, n in zip(place, x.shape, strict=True))] += x * y[place]
    if mode == "full":
        return total
    if mode == "same":
        return total[tuple(slice((f - n) // 2, (f - n) // 2 + n) for f, n in zip(total.shape, x.shape, strict=True))]
    shorter = list(map(min, x.shape, y.shape))
    return total[tuple(slice(n - 1, f - n + 1) for f, n in zip(total.shape, shorter, strict=True))]


def _terms(x: np.ndarray, y: np.ndarray, mode: str, **options: Any) -> np.ndarray:
    return _convolved(np.abs(_float(x)), np.abs(_float(y)), mode)


def _by_sums(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    return {**_pair(draw, dtype), "method": "direct"}


spec("convolve", _by_sums, lambda x, y, mode, method: _convolved(x, y, mode), 16, _terms)
spec(
    "fftconvolve",
    _pair,
    lambda x, y, mode: _convolved(_float(x), _float(y), mode),
    16,
    # transforms round relative to the whole
    lambda x, y, mode: (
        np.linalg.norm(_float(x).astype(complex)) * np.linalg.norm(_float(y).astype(complex)) + 0 * _terms(x, y, mode)
    ),
)


def _resampling(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    x = _signal(draw, dtype, 1, finite=True, low=-100, high=100)
    axis = draw(st.integers(-x.ndim, x.ndim - 1))
    return {"x": np.moveaxis(x, -1, axis), "num": draw(st.integers(1, 12)), "axis": axis}


def _resampled(x: np.ndarray, num: int, axis: int) -> np.ndarray:
    return scipy.signal.resample(x.astype(complex if x.dtype.kind == "c" else float), num, axis=axis)


def _largest(x: np.ndarray, num: int, axis: int) -> np.ndarray:
    total = np.abs(_float(x)).sum(axis, keepdims=True)
    return np.repeat(total, num, axis)


spec("resample", _resampling, _resampled, 16, _largest)
