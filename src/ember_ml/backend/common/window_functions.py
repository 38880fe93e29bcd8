"""Compute windows and mel filters in double precision, with any library that has NumPy's names."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from ember_ml.backend.common.special import scaled_bessel_i0
from ember_ml.backend.host_arrays import cast_host, host_dtypes
from ember_ml.core import dtypes as dt
from ember_ml.core.dtypes import as_dtype

__all__ = ["float_dtype", "host_mel_weights", "host_window", "mel_weights", "phase_filters", "window_weights"]


def float_dtype(dtype: Any) -> dt.EmberDType:
    """Return the dtype of weights, float32 by default; ``TypeError`` for all but real floats."""
    wanted = dt.DEFAULT_FLOAT if dtype is None else as_dtype(dtype)
    if wanted.kind != "float":
        raise TypeError(f"weights are real floats, not {wanted}")
    return wanted


def host_window(shape: str, length: int, periodic: bool, dtype: Any, parameter: float = 0.0) -> np.ndarray:
    """Return a window as a NumPy array of that dtype."""
    return cast_host(window_weights(np, shape, length, periodic, parameter), host_dtypes[float_dtype(dtype)])


def host_mel_weights(dtype: Any, *options: Any) -> np.ndarray:
    """Mel filters as a NumPy array of that dtype; the options are those of :func:`mel_weights`."""
    return cast_host(mel_weights(np, *options), host_dtypes[float_dtype(dtype)])


def window_weights(xp: Any, shape: str, length: int, periodic: bool, parameter: float = 0.0) -> Any:
    """Return a window of that shape: hann, hamming, blackman, bartlett, kaiser (with beta) or gaussian (with std)."""
    count = operator.index(length)
    if count < 0:
        raise ValueError(f"a window has no negative length, as {count} is")
    if shape == "kaiser" and not parameter >= 0:
        raise ValueError(f"beta must not be negative, as {parameter} is")
    if shape == "gaussian" and not parameter > 0:
        raise ValueError(f"std must be positive, not {parameter}")
    if count < 2:
        return xp.ones(count, dtype=xp.float64)
    period = count if periodic else count - 1
    steps = xp.arange(count, dtype=xp.float64)
    rise = xp.minimum(steps, period - steps) / period  # from 0 at the ends to 1/2 in the middle
    if shape == "bartlett":
        return 2 * rise
    if shape == "gaussian":
        return xp.exp(-0.5 * ((0.5 - rise) * period / parameter) ** 2)
    if shape == "kaiser":
        return _kaiser(xp, rise, parameter)
    hann = xp.sin(math.pi * rise) ** 2
    if shape == "hann":
        return hann
    # cosines of one and two turns, written in sin²: nothing cancels at the ends
    return 0.08 + 0.92 * hann if shape == "hamming" else hann * (0.36 + 0.64 * hann)


def _kaiser(xp: Any, rise: Any, beta: float) -> Any:
    """Return the ratio of two Bessel functions; each alone overflows for a large ``beta``."""
    inner = 2 * beta * xp.sqrt(rise * (1 - rise))
    whole = xp.zeros_like(rise) + beta
    return scaled_bessel_i0(xp, inner, False) / scaled_bessel_i0(xp, whole, False) * xp.exp(inner - whole)


def mel_weights(
    xp: Any, filters: int, bins: int, sample_rate: float, low: float, high: float | None, scale: str, norm: str | None
) -> Any:
    """Triangular filters, evenly spaced in mel: the weight of each of the bins, from 0 to half the sample rate."""
    half = sample_rate / 2
    top = half if high is None else high
    if operator.index(filters) < 1 or operator.index(bins) < 2:
        raise ValueError(f"a filterbank has 1 filter and 2 bins or more, not {filters} and {bins}")
    if not 0 <= low < top <= half:
        raise ValueError(f"frequencies must rise from 0 to half the sample rate, {half}, not from {low} to {top}")
    if norm not in (None, "slaney"):
        raise ValueError(f"norm must be None or 'slaney', not {norm!r}")
    to_mel, to_hertz = _scale(scale)
    first, last = to_mel(low), to_mel(top)
    places = [to_hertz(first + (last - first) * i / (filters + 1)) for i in range(filters + 2)]
    edges = xp.asarray(places, dtype=xp.float64)
    frequencies = (xp.arange(bins, dtype=xp.float64) * (half / (bins - 1)))[:, None]
    left, middle, right = edges[:-2], edges[1:-1], edges[2:]
    rising, falling = (frequencies - left) / (middle - left), (right - frequencies) / (right - middle)
    weights = xp.clip(xp.minimum(rising, falling), 0.0, None)
    return weights if norm is None else weights * (2 / (right - left))


def _scale(name: str) -> Any:
    """Return the functions from hertz to mel and back."""
    if name == "htk":
        return (
            lambda hertz: 2595 * math.log10(1 + hertz / 700),
            lambda mel: 700 * (10 ** (mel / 2595) - 1),
        )
    if name == "slaney":  # linear below 1000 Hz, which are 15 mel; 27 mel more for each factor of 6.4
        return (
            lambda hertz: hertz * 3 / 200 if hertz < 1000 else 15 + 27 * math.log(hertz / 1000) / math.log(6.4),
            lambda mel: mel * 200 / 3 if mel < 15 else 1000 * 6.4 ** ((mel - 15) / 27),
        )
    raise ValueError(f"scale must be 'htk' or 'slaney', not {name!r}")


def phase_filters(dtype: str, up: int, down: int) -> np.ndarray:
    """Return the filters that resample by ``up / down``, of shape (samples, 1, up): one for each phase of the result.

    They begin ``10 * max(up, down) // up`` samples before the first of a frame of ``down`` samples.
    """
    slower = max(up, down)
    half = 10 * slower
    steps = np.arange(-half, half + 1)
    taps = np.sinc(steps / slower) * window_weights(np, "kaiser", 2 * half + 1, False, 5.0)
    taps *= up / taps.sum()
    first, last = -(half // up), ((up - 1) * down + half) // up
    places = half + down * np.arange(up) - up * np.arange(first, last + 1)[:, None]
    inside = (places >= 0) & (places <= 2 * half)
    filters = np.where(inside, taps[np.clip(places, 0, 2 * half)], 0.0)
    return cast_host(filters[:, None, :], host_dtypes[as_dtype(dtype)])
