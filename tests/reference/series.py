"""Features of time series from their definitions, in float64, one series and one frequency after the other."""

from __future__ import annotations

import itertools

import numpy as np
import scipy.stats

__all__ = ["spectral", "statistics"]


def statistics(x: np.ndarray) -> dict[str, float]:
    """The statistics of one series."""
    x = x.astype(np.float64)
    deviation = x.std()
    above = [value > x.mean() for value in x]
    return {
        "mean": x.mean(),
        "median": float(np.median(x)),
        "min": x.min(),
        "max": x.max(),
        "sum": x.sum(),
        "rms": float(np.sqrt(np.mean(x**2))),
        "std": deviation,
        "var": x.var(),
        "skewness": float(scipy.stats.skew(x)) if deviation else 0.0,
        "kurtosis": float(scipy.stats.kurtosis(x)) if deviation else 0.0,
        "slope": float(np.polyfit(np.arange(len(x)), x, 1)[0]),
        "crossings": sum(a != b for a, b in itertools.pairwise(above)) / (len(x) - 1),
    }


def spectral(x: np.ndarray, sample_rate: float, bands: list[tuple[float, float]]) -> dict[str, float]:
    """The spectral features of one series, its Fourier transform summed term by term."""
    x = x.astype(np.float64)
    steps = np.arange(len(x))
    windowed = (x - x.mean()) * (0.5 - 0.5 * np.cos(2.0 * np.pi * steps / len(x)))
    numbers = np.arange(1, len(x) // 2 + 1)
    power = np.array([abs(np.sum(windowed * np.exp(-2j * np.pi * k * steps / len(x)))) ** 2 for k in numbers])
    frequencies = numbers * sample_rate / len(x)
    shares = power / power.sum()
    centroid = float(np.sum(frequencies * shares))
    found = {
        "centroid": centroid,
        "bandwidth": float(np.sqrt(np.sum((frequencies - centroid) ** 2 * shares))),
        "peak": float(frequencies[np.argmax(power)]),
        "rolloff": float(frequencies[np.searchsorted(np.cumsum(shares), 0.85)]),
        "entropy": float(scipy.stats.entropy(shares) / np.log(len(shares))),
        "flatness": float(scipy.stats.gmean(power) / np.mean(power)),
        "power": float(np.mean(windowed**2)),
    }
    inside = {f"{low}-{high}": (frequencies >= low) & (frequencies < high) for low, high in bands}
    return found | {name: float(shares[mask].sum()) for name, mask in inside.items()}
