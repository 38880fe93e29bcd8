"""Random numbers worked out by hand: Threefry in plain Python integers, distributions by SciPy, tests of fit."""

from __future__ import annotations

from functools import cache
from typing import Any

import mpmath
import numpy as np
from hypothesis import strategies as st
from scipy import stats

from tests.reference import FLOATS, arrays, shapes
from tests.reference.spec import spec

__all__ = [
    "KNOWN_ANSWERS",
    "choice_of",
    "fit",
    "fraction_of",
    "integers_of",
    "key_of",
    "normal_of",
    "order_of",
    "relative_error",
    "same_bits",
    "threefry",
    "ulps_apart",
    "words_of",
]

# key, counter, words: the known answers that Random123 publishes for threefry2x32 with 20 rounds
KNOWN_ANSWERS = [
    ((0x00000000, 0x00000000), (0x00000000, 0x00000000), (0x6B200159, 0x99BA4EFE)),
    ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
    ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
]
_TURNS = (13, 15, 26, 6, 17, 29, 16, 24)


def threefry(key: tuple[int, int], counter: tuple[int, int]) -> tuple[int, int]:
    """One block of Threefry-2x32-20, as the paper states it: 20 rounds, a subkey after every fourth."""
    size = 2**32
    keys = [key[0], key[1], 0x1BD11BDA ^ key[0] ^ key[1]]
    a, b = (counter[0] + key[0]) % size, (counter[1] + key[1]) % size
    for number in range(1, 21):
        turn = _TURNS[(number - 1) % 8]
        a = (a + b) % size
        b = ((b * 2**turn) % size + b // 2 ** (32 - turn)) ^ a
        if number % 4 == 0:
            step = number // 4
            a = (a + keys[step % 3]) % size
            b = (b + keys[(step + 1) % 3] + step) % size
    return a, b


def key_of(seed: int, draw: int = 0) -> tuple[int, int]:
    """The key of a draw of the generator with that seed."""
    return threefry(divmod(seed, 2**32), divmod(draw, 2**32))


def words_of(seed: int, count: int) -> list[int]:
    """The words of the first draw of a seed."""
    blocks = -(-count // 2)
    pairs = [threefry(key_of(seed), (number, blocks + number)) for number in range(blocks)]
    return ([a for a, _ in pairs] + [b for _, b in pairs])[:count]


def long_words_of(seed: int, count: int) -> list[int]:
    """The same in words of 64 bits."""
    words = words_of(seed, 2 * count)
    return [upper * 2**32 + lower for upper, lower in zip(words[:count], words[count:], strict=True)]


def fraction_of(seed: int, count: int, bits: int) -> list[float]:
    """Uniform numbers of so many bits."""
    if bits <= 24:
        return [(word >> (32 - bits)) / 2**bits for word in words_of(seed, count)]
    return [(word >> 11) / 2**53 for word in long_words_of(seed, count)]


def integers_of(seed: int, count: int, low: int, high: int) -> list[int]:
    span = high - low
    if span <= 2**16:
        return [low + word * span // 2**32 for word in words_of(seed, count)]
    return [low + word * span // 2**64 for word in long_words_of(seed, count)]


@cache
def normal_of(seed: int, count: int, dtype: str) -> np.ndarray:
    """The normal quantiles that the words name: the lowest bit is the sign, the upper bits the distance from 0."""
    bits = 53 if dtype == "float64" else 31
    words = long_words_of(seed, count) if dtype == "float64" else words_of(seed, count)
    found = []
    with mpmath.workdps(40):
        for word in words:
            k = word >> (11 if dtype == "float64" else 1)
            inside = mpmath.mpf(2 * k + 1) / 2 ** (bits + 1)  # twice the probability between 0 and the number
            found.append(float((-1 if word & 1 else 1) * mpmath.sqrt(2) * mpmath.erfinv(inside)))
    return np.array(found)


def order_of(seed: int, count: int) -> list[int]:
    """The places in the order of the words, read as signed integers."""
    words = [word - 2**32 if word >= 2**31 else word for word in words_of(seed, count)]
    return sorted(range(count), key=lambda place: (words[place], place))


def choice_of(seed: int, count: int, p: list[float]) -> list[int]:
    """Where 62 bits of each long word fall among the sums of the probabilities."""
    sums = np.cumsum(p)
    bounds = [int(part) for part in sums[:-1] / sums[-1] * 2.0**62]
    return [sum(bound <= (word >> 2) for bound in bounds) for word in long_words_of(seed, count)]


def fit(values: Any, name: str, parameters: tuple[float, ...] = ()) -> float:
    """The p-value that the values come from SciPy's distribution: Kolmogorov-Smirnov, or chi-squared of whole ones."""
    distribution = getattr(stats, name)(*parameters)
    values = np.asarray(values, dtype=np.float64).ravel()
    if not isinstance(getattr(stats, name), stats.rv_discrete):
        return float(stats.kstest(values, distribution.cdf).pvalue)
    edges = np.unique(distribution.ppf(np.linspace(0.0, 1.0, 41)[1:-1]))
    expected = np.diff(np.concatenate([[0.0], distribution.cdf(edges), [1.0]])) * values.size
    observed = np.bincount(np.searchsorted(edges, values), minlength=edges.size + 1)
    possible = expected > 1e-9 * values.size
    assert not observed[~possible].any()
    return float(
        stats.chisquare(observed[possible], expected[possible] * values.size / expected[possible].sum()).pvalue
    )


def relative_error(got: Any, want: Any) -> float:
    """The largest error in proportion to the value."""
    return float((np.abs(got - want) / np.abs(want)).max())


def same_bits(x: Any, y: Any) -> bool:
    """Whether two arrays have one dtype, one shape and the same bytes."""
    x, y = np.ascontiguousarray(x), np.ascontiguousarray(y)
    return x.dtype == y.dtype and x.shape == y.shape and x.tobytes() == y.tobytes()


def ulps_apart(x: Any, y: Any) -> int:
    """How many floats of their dtype lie between the values, at most."""
    bits = np.int32 if np.asarray(x).dtype == np.float32 else np.int64
    a, b = (np.ascontiguousarray(array).view(bits).astype(np.int64) for array in (x, y))
    lowest = np.int64(np.iinfo(bits).min)
    a, b = np.where(a < 0, lowest - a, a), np.where(b < 0, lowest - b, b)
    return int(np.abs(a - b).max(initial=0))


def _draw_dropout(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    finite = dtype not in FLOATS
    x = draw(arrays(dtype, finite=finite))
    return {"x": x, "rate": draw(st.sampled_from((0.0, 0.25, 0.5, 0.9, 1.0))), "seed": draw(st.integers(0, 2**64 - 1))}


def _dropout(x: np.ndarray, rate: float, seed: int) -> np.ndarray:
    x = x.astype(np.float32) if x.dtype.kind in "biu" else x
    kept = np.array([word < int((1.0 - rate) * 2**32) for word in words_of(seed, x.size)], dtype=bool).reshape(x.shape)
    if rate == 1.0:
        return np.zeros_like(x)
    return x if rate == 0.0 else np.where(kept, x / (1.0 - rate), 0)


spec("dropout", _draw_dropout, _dropout)


def _draw_shuffle(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    x = draw(arrays(dtype, shapes(min_dims=1)))
    return {"x": x, "axis": draw(st.integers(-x.ndim, x.ndim - 1)), "seed": draw(st.integers(0, 2**64 - 1))}


def _shuffle(x: np.ndarray, axis: int, seed: int) -> np.ndarray:
    return np.take(x, np.array(order_of(seed, x.shape[axis]), dtype=np.int64), axis)


spec("shuffle", _draw_shuffle, _shuffle)
