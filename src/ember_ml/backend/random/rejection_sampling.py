"""Gamma, beta, Poisson and binomial numbers: drawn by rejection, on the host, in float64.

They use only the four operations, square roots and the logarithm and exponential of this package: a seed returns the
same numbers on every backend and every machine. Each function gets the key of the draw and float64
parameters of the shape of the result.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ember_ml.backend.random.distributions import EXPONENTIAL, NORMAL, UNIFORM, FloatVariate, log
from ember_ml.backend.random.draw import HOST_LANES, PIECE, host_draw
from ember_ml.backend.random.threefry import block

__all__ = ["beta", "binomial", "gamma", "poisson"]

_FEW = 10.0  # up to this mean the sum of the probabilities is searched, beyond it rejection is faster
_HALF_LOG_TAU = 0.9189385332046727  # log(2 pi) / 2


class _Numbers:
    """As many numbers as are asked for, each time with a key of its own, derived from the key of the draw."""

    def __init__(self, key: tuple[int, int]) -> None:
        self.key, self.times = key, 0

    def take(self, kind: FloatVariate, count: int) -> np.ndarray:
        self.times += 1
        return host_draw(kind.float64, block(self.key, self.times), count)


def _log(x: np.ndarray) -> np.ndarray:
    return log(x, HOST_LANES)


def _log1p(x: np.ndarray) -> np.ndarray:
    """log(1 + x), as precise as x: the error of 1 + x is undone by rescaling."""
    near = 1.0 + x
    shown = near - 1.0
    is_tiny = shown == 0.0
    return np.where(is_tiny, x, _log(near) * (x / np.where(is_tiny, 1.0, shown)))


def _exp(x: np.ndarray) -> np.ndarray:
    """exp(x) = 2**k exp(r) with the Taylor polynomial of exp(r), |r| < 0.35; 0 and infinity where it must be."""
    x = np.clip(x, -800.0, 800.0)
    k = np.rint(x * 1.4426950408889634)
    r = (x - k * 0.6931471803691238) - k * 1.9082149292705877e-10
    total = np.full_like(r, 1.0 / math.factorial(14))
    for power in range(13, -1, -1):
        total = total * r + 1.0 / math.factorial(power)
    with np.errstate(over="ignore", under="ignore"):
        return np.ldexp(total, k.astype(np.int64))


def _in_pieces(compute: Callable[..., np.ndarray], *parameters: np.ndarray) -> np.ndarray:
    """Apply ``compute`` to vectors of the parameters, block by block, to stay in the cache."""
    out = np.empty(parameters[0].shape)
    flat, vectors = out.reshape(-1), [parameter.reshape(-1) for parameter in parameters]
    for start in range(0, flat.size, PIECE):
        piece = slice(start, start + PIECE)
        flat[piece] = compute(*(vector[piece] for vector in vectors))
    return out


def _accept(count: int, attempt: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """Return one accepted number for each index; ``attempt`` takes the open indices, returns numbers and a mask."""
    out = np.empty(count)
    places = np.arange(count)
    while places.size:
        numbers, is_accepted = attempt(places)
        out[places[is_accepted]] = numbers[is_accepted]
        places = places[~is_accepted]
    return out


def _gamma_parts(numbers: _Numbers, alpha: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return a gamma number as x and s, of which it is x * exp(s); s is 0 from alpha = 1 on.

    G. Marsaglia and W. W. Tsang, "A simple method for generating gamma variables", 2000. Below 1 the number for
    alpha + 1 is shrunk by the power 1 / alpha of a uniform one.
    """
    is_small = alpha < 1.0
    d = np.where(is_small, alpha + 1.0, alpha) - 1.0 / 3.0
    c = 1.0 / np.sqrt(9.0 * d)

    def attempt(places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        x = numbers.take(NORMAL, places.size)
        u = 1.0 - numbers.take(UNIFORM, places.size)  # never 0
        root = 1.0 + c[places] * x
        v = root * root * root
        square = x * x
        is_accepted = (v > 0.0) & (u < 1.0 - 0.0331 * square * square)
        rest = np.flatnonzero(~is_accepted & (v > 0.0))
        v_, d_ = v[rest], d[places[rest]]
        is_accepted[rest] = _log(u[rest]) < 0.5 * square[rest] + d_ * (1.0 - v_ + _log(v_))
        return d[places] * v, is_accepted

    x = _accept(alpha.size, attempt)
    shrinking = np.zeros_like(x)
    small = np.flatnonzero(is_small)
    shrinking[small] = -numbers.take(EXPONENTIAL, small.size) / alpha[small]
    return x, shrinking


def gamma(key: tuple[int, int], alpha: np.ndarray) -> np.ndarray:
    """Of the gamma distribution with scale 1."""
    numbers = _Numbers(key)

    def piece(alpha: np.ndarray) -> np.ndarray:
        x, shrinking = _gamma_parts(numbers, alpha)
        return x * _exp(shrinking)

    return _in_pieces(piece, alpha)


def beta(key: tuple[int, int], alpha: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Divide one gamma number by the sum of two; by logarithms, since both may underflow."""
    numbers = _Numbers(key)

    def piece(alpha: np.ndarray, other: np.ndarray) -> np.ndarray:
        first, second = _gamma_parts(numbers, alpha), _gamma_parts(numbers, other)
        difference = (_log(second[0]) - _log(first[0])) + (second[1] - first[1])
        return 1.0 / (1.0 + _exp(difference))

    return _in_pieces(piece, alpha, other)


def _search(u: np.ndarray, probability: np.ndarray, ratio: Callable[[int, np.ndarray], np.ndarray]) -> np.ndarray:
    """Return the first k whose probability, summed up from 0, exceeds u; ``ratio`` is that of k to that of k - 1."""
    out = np.zeros(u.size)
    places = np.arange(u.size)
    total = probability
    # 200 is more than 20 standard deviations beyond the mean: so far no number of 53 bits reaches
    for k in range(1, 200):
        is_open = u[places] >= total
        places, total, probability = places[is_open], total[is_open], probability[is_open]
        if not places.size:
            break
        out[places] = k
        probability = probability * ratio(k, places)
        total = total + probability
    return out


def _stirling_error(k: np.ndarray) -> np.ndarray:
    """log(k!) minus Stirling's formula for it, for k > 0."""
    low = _STIRLING_ERRORS[np.minimum(k, len(_STIRLING_ERRORS) - 1).astype(np.int64)]
    high = np.maximum(k, 15.0)
    square = high * high
    series = 1 / 12 - (1 / 360 - (1 / 1260 - (1 / 1680 - 1 / 1188 / square) / square) / square) / square
    return np.where(k < len(_STIRLING_ERRORS), low, series / high)


def _stirling_errors() -> np.ndarray:
    k = np.arange(1.0, 16.0)
    factorials = _log(np.array([float(math.factorial(n)) for n in range(1, 16)]))
    return np.concatenate([[0.0], factorials - ((k + 0.5) * _log(k) - k + _HALF_LOG_TAU)])


_STIRLING_ERRORS = _stirling_errors()


def _deviance(x: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """x log(x / mean) - (x - mean), precise where x is near the mean; C. Loader, "Fast and accurate computation of
    binomial probabilities", 2000.
    """
    return x * _log1p((x - mean) / mean) - (x - mean)


def poisson(key: tuple[int, int], mean: np.ndarray) -> np.ndarray:
    """Of the Poisson distribution with that mean, as whole float64 numbers."""
    numbers = _Numbers(key)

    def piece(mean: np.ndarray) -> np.ndarray:
        out = np.empty(mean.size)
        few, many = np.flatnonzero(mean < _FEW), np.flatnonzero(mean >= _FEW)
        rare = mean[few]
        out[few] = _search(numbers.take(UNIFORM, few.size), _exp(-rare), lambda k, places: rare[places] / k)
        out[many] = _many_events(numbers, mean[many])
        return out

    return _in_pieces(piece, mean)


def _distance(u: np.ndarray) -> np.ndarray:
    """How far u is from the ends of the interval from -1/2 to 1/2; never 0, by which it is divided."""
    return np.maximum(0.5 - np.abs(u), 2.0**-53)


def _many_events(numbers: _Numbers, mean: np.ndarray) -> np.ndarray:
    """W. Hoermann, "The transformed rejection method for generating Poisson random variables", 1993: PTRS."""
    b = 0.931 + 2.53 * np.sqrt(mean)
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    inside = 0.9277 - 3.6224 / (b - 2.0)

    def attempt(places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        m, a_, b_ = mean[places], a[places], b[places]
        u = numbers.take(UNIFORM, places.size) - 0.5
        v = 1.0 - numbers.take(UNIFORM, places.size)  # never 0
        s = _distance(u)
        k = np.floor((2.0 * a_ / s + b_) * u + m + 0.43)
        height = v * inverse_alpha[places] / (a_ / (s * s) + b_)
        is_accepted = (s >= 0.07) & (v <= inside[places])
        rest = np.flatnonzero(~is_accepted & (k >= 0.0))
        is_accepted[rest] = _log(height[rest]) <= _log_poisson(k[rest], m[rest])
        return k, is_accepted

    return _accept(mean.size, attempt)


def _log_poisson(k: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """Return the logarithm of the probability of k events, by Loader's formula."""
    positive = np.maximum(k, 1.0)
    between = -_stirling_error(positive) - _deviance(positive, mean) - 0.5 * _log(positive) - _HALF_LOG_TAU
    return np.where(k == 0.0, -mean, between)


def binomial(key: tuple[int, int], n: np.ndarray, p: np.ndarray) -> np.ndarray:
    """Return the number of successes in n tries, each with the probability p, as whole float64 numbers."""
    numbers = _Numbers(key)

    def piece(n: np.ndarray, p: np.ndarray) -> np.ndarray:
        rarer = np.minimum(p, 1.0 - p)
        out = np.empty(n.size)
        few, many = np.flatnonzero(n * rarer < _FEW), np.flatnonzero(n * rarer >= _FEW)
        out[few] = _few_successes(numbers, n[few], rarer[few])
        out[many] = _many_successes(numbers, n[many], rarer[many])
        return np.where(p > 0.5, n - out, out)

    return _in_pieces(piece, n, p)


def _few_successes(numbers: _Numbers, n: np.ndarray, p: np.ndarray) -> np.ndarray:
    odds = p / (1.0 - p)
    found = _search(
        numbers.take(UNIFORM, n.size),
        _exp(n * _log1p(-p)),
        lambda k, places: np.maximum(n[places] - (k - 1), 0.0) / k * odds[places],
    )
    return np.minimum(found, n)


def _many_successes(numbers: _Numbers, n: np.ndarray, p: np.ndarray) -> np.ndarray:
    """W. Hoermann, "The generation of binomial random variates", 1993: BTRS; ``p`` is at most one half."""
    q = 1.0 - p
    deviation = np.sqrt(n * p * q)
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * p
    alpha = (2.83 + 5.1 / b) * deviation
    inside = 0.92 - 4.2 / b
    at_mode = _log_binomial(np.floor((n + 1.0) * p), n, p, q)

    def attempt(places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        n_, p_, a_, b_ = n[places], p[places], a[places], b[places]
        u = numbers.take(UNIFORM, places.size) - 0.5
        v = 1.0 - numbers.take(UNIFORM, places.size)  # never 0
        s = _distance(u)
        k = np.floor((2.0 * a_ / s + b_) * u + (n_ * p_ + 0.5))
        height = v * alpha[places] / (a_ / (s * s) + b_)
        is_accepted = (s >= 0.07) & (v <= inside[places])
        rest = np.flatnonzero(~is_accepted & (k >= 0.0) & (k <= n_))
        relative = _log_binomial(k[rest], n_[rest], p_[rest], q[places[rest]]) - at_mode[places[rest]]
        is_accepted[rest] = _log(height[rest]) <= relative
        return k, is_accepted

    return _accept(n.size, attempt)


def _log_binomial(k: np.ndarray, n: np.ndarray, p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Return the logarithm of the probability of k successes in n tries, by Loader's formula."""
    hits, misses = np.maximum(k, 1.0), np.maximum(n - k, 1.0)
    between = (
        _stirling_error(n)
        - _stirling_error(hits)
        - _stirling_error(misses)
        - _deviance(hits, n * p)
        - _deviance(misses, n * q)
        + 0.5 * (_log(n) - _log(hits) - _log(misses))
        - _HALF_LOG_TAU
    )
    return np.where(k == 0.0, n * _log1p(-p), np.where(k == n, n * _log(p), between))
