"""Draw random numbers: take a key from the stream, then compute the numbers on the backend or on the host.

A backend may compute words and formulas on its own tensors (:class:`~ember_ml.backend.capabilities.NativeRandom`).
Without that, or where it leaves a draw to the host, NumPy computes the numbers and they are copied over; they are the
same either way.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ember_ml.backend.capabilities import NativeRandom
from ember_ml.backend.contract import Backend
from ember_ml.backend.host_arrays import cast_host, host_dtypes
from ember_ml.backend.random.distributions import NORMAL_CENTRE, Variate, normal_beyond
from ember_ml.backend.random.generator import Key, SeedLike, next_key
from ember_ml.backend.random.parameters import largest_below
from ember_ml.backend.random.threefry import CHUNK, FEW, LARGE_CHUNK, MASK, aligned, few_words, fill
from ember_ml.backend.selection import active
from ember_ml.core.dtypes import EmberDType, int32
from ember_ml.errors import UnsupportedOp

__all__ = [
    "HOST_LANES",
    "PIECE",
    "Change",
    "constant",
    "draw",
    "draw_changed",
    "draw_on_host",
    "host_draw",
    "permutation",
    "stretch",
]


class _HostLanes:
    """NumPy's functions for the formulas."""

    def cast(self, x: np.ndarray, dtype: EmberDType) -> np.ndarray:
        return x.astype(host_dtypes[dtype])

    def view(self, x: np.ndarray, dtype: EmberDType) -> np.ndarray:
        return x.view(host_dtypes[dtype])

    def where(self, condition: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.where(condition, x, y)

    def otherwise(
        self, condition: np.ndarray, x: np.ndarray, compute: Callable[[np.ndarray], np.ndarray], source: np.ndarray
    ) -> np.ndarray:
        others = np.flatnonzero(~condition)
        x[others] = compute(source[others])  # of few elements, which takes less than the passes over all
        return x

    def keep(self, x: np.ndarray) -> np.ndarray:
        return x

    def sqrt(self, x: np.ndarray) -> np.ndarray:
        return np.sqrt(x)


HOST_LANES = _HostLanes()
_MOST_NUMBERS = 2**32  # as many blocks as counters
PIECE = 8192  # numbers at a time: a formula's temporaries stay in the cache, and in memory that the process has
_SIGNED_WORD = Variate("signed word", int32, False, lambda lanes, word: word)


Steps = list[tuple[Callable[..., Any], np.ndarray]]
"""Functions of two vectors, and the number that each gets beside the vector that it changes."""


class Change(NamedTuple):
    """What becomes of numbers that were drawn: they are multiplied by ``scale``, then ``place`` is added."""

    scale: float = 1.0
    place: float = 0.0
    most: np.ndarray | None = None
    """What a sum that was rounded up is set back to, where there may be one."""

    def steps(self, dtype: np.dtype, unit: float) -> Steps:
        """Return what changes ``unit`` times the numbers of a vector, in as few passes as give the same result."""
        scale, product = (np.array(factor, dtype) for factor in (self.scale, self.scale * unit))
        is_exact = float(product) == float(scale) * unit
        factors = [product] if is_exact else [np.array(unit, dtype), scale]
        found: Steps = [(np.multiply, factor) for factor in factors if factor != 1.0]
        if self.place != 0.0:
            found.append((np.add, np.array(self.place, dtype)))
        if self.most is not None:
            found.append((np.minimum, self.most))
        return found


def _take(steps: Steps, out: np.ndarray) -> None:
    for function, value in steps:
        function(out, value, out=out)  # NumPy 2.4: by position, minimum warns


_NO_CHANGE = Change()
_UNIT = 2.0**-24  # uniform numbers are whole multiples of it


def stretch(low: float, high: float, dtype: EmberDType) -> Change:
    """Return what makes numbers from ``low`` to below ``high`` of those from 0 to 1, as random_uniform does by ops."""
    number, last = host_dtypes[dtype].type, largest_below((low, high), dtype.name)
    largest = number(1.0 - 0.5 * np.finfo(number).eps) * number(high - low) + number(low)
    return Change(high - low, low, last if largest > last else None)


def host_draw(variate: Variate, key: tuple[int, int], count: int, change: Change | None = None) -> np.ndarray:
    """Return ``count`` numbers, computed by NumPy, and changed while they are in the processor's cache."""
    write = None if variate.wide else _IN_PLACE.get(variate.name)
    dtype = host_dtypes[variate.dtype]
    is_uniform = write is _write_uniform
    if is_uniform and count <= FEW:  # exact, without the arrays that a pass needs: a token of a text takes one number
        first, second = few_words(key, (count + 1) // 2)
        out = np.array([(word >> 8) * _UNIT for word in (first + second)[:count]], dtype=np.float32)
        if change is not None:
            _take(change.steps(dtype, 1.0), out)
        return out
    steps = (change or _NO_CHANGE).steps(dtype, _UNIT if is_uniform else 1.0) if change or is_uniform else []
    out = aligned(count, dtype)
    fill(out, key, partial(write or _write_formula, variate, steps), variate.wide)
    return out


def _write_formula(variate: Variate, steps: Steps, out: np.ndarray, *words: np.ndarray) -> None:
    for start in range(0, len(out), PIECE):
        piece = slice(start, start + PIECE)
        out[piece] = variate.formula(HOST_LANES, *(word[piece].view(np.int32) for word in words))
    _take(steps, out)


def _write_uniform(variate: Variate, steps: Steps, out: np.ndarray, words: np.ndarray) -> None:
    np.right_shift(words, _UPPER_BITS, words)
    np.copyto(out, words.view(np.int32), casting="unsafe")  # signed ones, which more processors convert many at a time
    _take(steps, out)


def _write_bernoulli(variate: Variate, steps: Steps, out: np.ndarray, words: np.ndarray) -> None:
    bound = int(variate.parameters[0] * 2.0**32)
    if bound > MASK:
        out[:] = True
    else:
        np.less(words, np.uint32(bound), out)


def _write_normal(variate: Variate, steps: Steps, out: np.ndarray, words: np.ndarray) -> None:
    count = len(out)
    size = CHUNK if count <= CHUNK else LARGE_CHUNK
    try:
        memory = _memory[size].pop()
    except IndexError:
        memory = np.empty((3, size), dtype=np.float32)
    t, quotient = memory[0, :count], memory[1:, :count]  # two polynomials, in one call each step
    np.right_shift(words, _ONE_BIT, t.view(np.uint32))
    np.copyto(out, t.view(np.int32), casting="unsafe")
    np.add(out, np.float32(0.5), out)
    np.multiply(out, np.float32(2.0**-32), out)
    is_beyond = np.greater(out, np.float32(0.425), t.view(np.bool)[:count])
    others = np.flatnonzero(is_beyond)
    np.multiply(out, out, t)
    np.subtract(np.float32(0.180625), t, t)
    first, *middle, last = _CENTRE
    np.multiply(t, first, quotient)
    for coefficients in middle:
        np.add(quotient, coefficients, quotient)
        np.multiply(quotient, t, quotient)
    np.add(quotient, last, quotient)
    np.divide(quotient[0], quotient[1], t)
    np.multiply(out, t, out)
    _memory[size].append(memory)
    out[others] = normal_beyond(HOST_LANES, (words.take(others) >> _ONE_BIT).view(np.int32))
    np.left_shift(words, _SIGN_PLACE, words)  # the lowest bit is the sign
    bits = out.view(np.uint32)
    np.bitwise_xor(bits, words, bits)
    _take(steps, out)


_memory: dict[int, list[np.ndarray]] = {CHUNK: [], LARGE_CHUNK: []}
"""What pieces of normal numbers need, which no thread uses now: new memory would come from the system page by page."""
_ONE_BIT, _UPPER_BITS, _SIGN_PLACE = (np.array(places, dtype=np.uint32) for places in (1, 8, 31))
_CENTRE = [np.array(pair, dtype=np.float32)[:, np.newaxis] for pair in zip(*NORMAL_CENTRE, strict=True)]
_IN_PLACE = {"uniform": _write_uniform, "bernoulli": _write_bernoulli, "normal": _write_normal}
"""What is drawn most often, in fewer passes over memory than by its formula, with the same numbers."""


def draw(variate: Variate, shape: tuple[int, ...], device: str | None, seed: SeedLike | None) -> Any:
    """Return a native tensor of random numbers on the active backend."""
    return draw_changed(variate, shape, device, seed, None)[0]


def draw_changed(
    variate: Variate, shape: tuple[int, ...], device: str | None, seed: SeedLike | None, change: Change | None
) -> tuple[Any, bool]:
    """Return random numbers, and whether the host computed them: then ``change`` was applied, piece by piece."""
    if math.prod(shape) > _MOST_NUMBERS:
        raise ValueError(f"one call draws at most 2**32 random numbers; draw {shape} in several calls")
    backend = active()
    own, key, native = _key(backend, seed)
    if native:
        library = own.native(variate) if own else None
        if library is not None:
            dtype = backend.dtypes[variate.dtype]
            return library(key[0] << 32 | key[1], shape, dtype, device, *variate.parameters), False
    if own is not None and own.takes(variate, key, device):
        return own.draw(variate, key, shape, device), False
    numbers = host_draw(variate, key, math.prod(shape), change).reshape(shape)
    return (backend.from_host if own is None else own.adopt)(numbers, device), True


def permutation(count: int, device: str | None, seed: SeedLike | None) -> Any:
    """Return the integers below ``count`` in random order: the stable order of as many words, as int64."""
    if count > _MOST_NUMBERS:
        raise ValueError(f"at most 2**32 things can be put in random order, not {count}")
    backend = active()
    own, key, _ = _key(backend, seed)
    if own is not None and type(key) is not tuple:
        return own.order(own.draw(_SIGNED_WORD, key, (count,), device))
    # sorting pairs of word and index is many times faster than a stable sort of words, with the same result
    pairs = host_draw(_SIGNED_WORD, key, count).astype(np.int64) << 32
    pairs |= np.arange(count)
    pairs.sort()
    pairs &= 0xFFFFFFFF
    return backend.from_host(pairs, device)


def draw_on_host(
    compute: Callable[[tuple[int, int]], np.ndarray], dtype: EmberDType, device: str | None, seed: SeedLike | None
) -> Any:
    """Return a native tensor of what the host computes with a key: for numbers that take no fixed number of words."""
    backend = active()
    _, key, _ = _key(backend, seed)
    if type(key) is not tuple:
        raise UnsupportedOp(
            "these numbers are drawn by rejection on the host, which a compiled function cannot do; "
            "draw them outside of it and pass them in"
        )
    return backend.from_host(cast_host(np.asarray(compute(key)), host_dtypes[dtype]), device)


def constant(compute: Callable[..., np.ndarray], device: str | None, *data: Any) -> Any:
    """Return a native tensor of what the host computes of data; of plain data only while torch traces a function."""
    backend = active()
    own = backend.random
    return backend.from_host(compute(*data), device) if own is None else own.constant(compute, device, *data)


def _key(backend: Backend, seed: SeedLike | None) -> tuple[NativeRandom | None, Key, bool]:
    """Return the backend's capability, the key of this draw, and whether the library's own generator may serve it."""
    own = backend.random
    key, native = next_key(seed) if own is None else own.next_key(seed)
    return own, key, native
