"""Features of the spectrum of time series."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from ember_ml import ops
from ember_ml.features.base import FeatureExtractor
from ember_ml.features.statistics import center_series
from ember_ml.nn.features.common.rows import read_floats
from ember_ml.typing import Tensor, TensorLike

__all__ = ["SpectralFeatures"]


class SpectralFeatures(FeatureExtractor):
    """How the power of each series is spread over frequencies.

    Of ``(..., time)`` comes ``(..., features)``. The mean is taken out, a Hann window laid over the rest, and P(f) is
    the power of its Fourier transform at the frequencies above 0, p(f) = P(f) / sum P the share of each. In the order
    of ``features``:

    - "centroid": the mean frequency, sum f p; "bandwidth": the deviation around it, the root of sum (f - centroid)² p;
    - "peak": the frequency of the largest power; "rolloff": that below which 85 % of the power lie;
    - "entropy": -sum p ln p, of the largest that is possible: 0 for one frequency, 1 for all alike;
    - "flatness": the geometric mean of P over its arithmetic mean: 0 for tones, near 1 for noise;
    - "power": the mean square of the windowed series.

    Then, for each of ``bands``, pairs (low, high), the share of the power with low <= f < high. Frequencies are in the
    unit of ``sample_rate``, which is the number of steps per unit of time. A constant series has 0 for everything.

    >>> import math
    >>> from ember_ml import ops
    >>> from ember_ml.features import SpectralFeatures
    >>> tone = [math.sin(2.0 * math.pi * 5.0 * t / 64.0) for t in range(64)]
    >>> extract = SpectralFeatures(("peak",), bands=((0.0, 10.0), (10.0, 32.0)), sample_rate=64.0)
    >>> ops.to_numpy(ops.round(extract([tone]))).tolist()
    [[5.0, 1.0, 0.0]]
    """

    def __init__(
        self,
        features: Sequence[str] = ("centroid", "bandwidth", "peak", "rolloff", "entropy", "flatness", "power"),
        bands: Sequence[tuple[float, float]] = (),
        sample_rate: float = 1.0,
    ) -> None:
        self.features = features
        self.bands = bands
        self.sample_rate = sample_rate

    def extract(self, data: TensorLike) -> Tensor:
        """Return the spectral features of each series in ``data``."""
        self._check()
        x, dtype = read_floats(data)
        if not len(x.shape) or x.shape[-1] < 2:
            raise ValueError(f"a spectrum needs at least 2 steps, and the data has shape {tuple(x.shape)}")
        spectrum = _Spectrum(x, self.sample_rate)
        found = [_FEATURES[name](spectrum) for name in self.features]
        found += [spectrum.share(low, high) for low, high in self.bands]
        return ops.cast(ops.stack(found, axis=-1), dtype)

    def _check(self) -> None:
        for name in self.features:
            if name not in _FEATURES:
                raise ValueError(f"there is no spectral feature {name!r}; there are {', '.join(_FEATURES)}")
        if not len(self.features) and not len(self.bands):
            raise ValueError("at least one feature or band must be asked for")
        if not self.sample_rate > 0.0:
            raise ValueError(f"sample_rate is a number of steps per unit of time above 0, not {self.sample_rate!r}")
        for band in self.bands:
            if len(band) != 2 or not band[0] < band[1]:
                raise ValueError(f"a band is a pair (low, high) with low below high, not {band!r}")


class _Spectrum:
    """The power of series at the frequencies above 0, and the share of each."""

    def __init__(self, x: Tensor, sample_rate: float) -> None:
        steps, dtype, device = x.shape[-1], ops.dtype(x), ops.get_device(x)
        self.windowed = ops.multiply(center_series(x), ops.hann_window(steps, dtype=dtype, device=device))
        transformed = ops.rfft(self.windowed)[..., 1:]
        self.power = ops.add(ops.square(ops.real(transformed)), ops.square(ops.imag(transformed)))
        self.frequencies = ops.rfftfreq(steps, 1.0 / sample_rate, dtype=dtype, device=device)[1:]
        self.shares = ops.divide_no_nan(self.power, ops.sum(self.power, axis=-1, keepdims=True))

    def mean(self, values: Tensor) -> Tensor:
        """Return the mean of values at each frequency, weighted by power."""
        return ops.sum(ops.multiply(values, self.shares), axis=-1)

    def share(self, low: float, high: float) -> Tensor:
        """Return the part of the power that lies in a band."""
        is_inside = ops.logical_and(ops.greater_equal(self.frequencies, low), ops.less(self.frequencies, high))
        return self.mean(ops.cast(is_inside, ops.dtype(self.shares)))

    def is_silent(self) -> Tensor:
        """Return whether there is no power at all."""
        return ops.equal(ops.sum(self.power, axis=-1), 0.0)

    def zero_silent(self, values: Tensor) -> Tensor:
        """Return ``values``, and 0 where there is no power."""
        return ops.where(self.is_silent(), ops.zeros_like(values), values)


def _bandwidth(spectrum: _Spectrum) -> Tensor:
    centroid = ops.expand_dims(spectrum.mean(spectrum.frequencies), -1)
    return ops.sqrt(spectrum.mean(ops.square(ops.subtract(spectrum.frequencies, centroid))))


def _peak(spectrum: _Spectrum) -> Tensor:
    return spectrum.zero_silent(ops.take(spectrum.frequencies, ops.argmax(spectrum.power, axis=-1)))


def _rolloff(spectrum: _Spectrum) -> Tensor:
    reached = ops.greater_equal(ops.cumsum(spectrum.shares, axis=-1), 0.85)
    first = ops.argmax(ops.cast(reached, "int32"), axis=-1)
    return spectrum.zero_silent(ops.take(spectrum.frequencies, first))


def _entropy(spectrum: _Spectrum) -> Tensor:
    most = math.log(spectrum.shares.shape[-1]) or 1.0  # the entropy of a single frequency is 0
    return ops.divide(ops.negative(ops.sum(ops.xlogy(spectrum.shares, spectrum.shares), axis=-1)), most)


def _flatness(spectrum: _Spectrum) -> Tensor:
    geometric = ops.exp(ops.mean(ops.log(spectrum.shares), axis=-1))
    return spectrum.zero_silent(ops.multiply(geometric, float(spectrum.shares.shape[-1])))


_FEATURES: dict[str, Callable[[_Spectrum], Tensor]] = {
    "centroid": lambda spectrum: spectrum.mean(spectrum.frequencies),
    "bandwidth": _bandwidth,
    "peak": _peak,
    "rolloff": _rolloff,
    "entropy": _entropy,
    "flatness": _flatness,
    "power": lambda spectrum: ops.mean(ops.square(spectrum.windowed), axis=-1),
}
