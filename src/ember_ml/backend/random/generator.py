"""Generators: streams of keys, one for each draw.

A generator is a key and a counter. Each draw takes one derived key, the Threefry block of the generator's key and its
counter, and the counter goes up by one; so a stream depends on the seed and the number of draws before, and on nothing
else.
"""

from __future__ import annotations

import itertools
import operator
import os
import threading
import weakref
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from ember_ml.backend.random.threefry import MASK, block
from ember_ml.errors import UnsupportedOp

__all__ = [
    "Generator",
    "Key",
    "SeedLike",
    "TracedGenerator",
    "bookmark",
    "default_generator",
    "first_key",
    "generators",
    "lent",
    "next_key",
    "seed",
    "streaming",
]

Key: TypeAlias = Any
"""Two 32-bit words: a tuple of ints, or, in a function that is being traced, a native tensor of two int32."""


_numbers = itertools.count(1)
generators: weakref.WeakValueDictionary[int, Generator] = weakref.WeakValueDictionary()
"""Every generator by its number, under which a compiled function asks for keys."""


class Generator:
    """A stream of random numbers of its own, the same on every backend; every random op takes it as ``seed``.

    Equal seeds give equal streams; without a seed the operating system gives one. Seeds are integers from 0 to
    2**64 - 1. With ``native`` the numbers come from the backend's own generator where it is faster, and then differ
    from backend to backend. A generator may be used by several threads at once; which of them gets which numbers then
    depends on their timing, so give each thread one of :meth:`split`.

    >>> from ember_ml import ops
    >>> generator = ops.Generator(42)
    >>> first, second = (ops.random_integers(3, 0, 100, seed=generator) for _ in range(2))
    >>> ops.to_numpy(first).tolist() == ops.to_numpy(ops.random_integers(3, 0, 100, seed=42)).tolist()
    True
    """

    __slots__ = ("__weakref__", "_counter", "_key", "_lock", "native", "number")

    native: bool
    """Whether the backend's own generator may serve its draws."""
    number: int
    """The number that identifies it in this process."""

    def __init__(self, seed: int | None = None, native: bool = False) -> None:
        self.number = next(_numbers)
        generators[self.number] = self
        self._key = _key_of(int.from_bytes(os.urandom(8), "big") if seed is None else seed)
        self._counter = 0
        self._lock = threading.Lock()
        self.native = bool(native)

    def next_key(self) -> tuple[int, int]:
        """Return the key of the next draw, two 32-bit words; the generator moves on by one draw."""
        with self._lock:
            counter = self._counter
            self._counter = counter + 1 & 0xFFFFFFFFFFFFFFFF
        return block(self._key, counter)

    def split(self, n: int = 2) -> list[Generator]:
        """``n`` generators whose streams have nothing in common with one another or with this one.

        This one moves on by one draw, so that a second split gives others.

        >>> from ember_ml import ops
        >>> a, b = ops.Generator(42).split()
        >>> a.next_key() == b.next_key()
        False
        """
        key = self.next_key()
        return [_with(block(key, number), 0, self.native) for number in range(operator.index(n))]

    def skip(self, draws: int) -> None:
        """Move on as if so many draws had been made."""
        with self._lock:
            self._counter = self._counter + operator.index(draws) & 0xFFFFFFFFFFFFFFFF

    def state(self) -> dict[str, Any]:
        """Return where the stream stands, as plain data that JSON can hold; :meth:`from_state` goes on from there.

        >>> from ember_ml import ops
        >>> generator = ops.Generator(42)
        >>> saved = generator.state()
        >>> generator.next_key() == ops.Generator.from_state(saved).next_key()
        True
        """
        with self._lock:
            return {"key": list(self._key), "counter": self._counter, "native": self.native}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Generator:
        """Return the generator that :meth:`state` described."""
        try:
            first, second = (operator.index(word) for word in state["key"])
            counter, native = operator.index(state["counter"]), bool(state["native"])
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(
                f"a generator's state has a key of two words, a counter and native, not {state}"
            ) from error
        if not (0 <= first <= MASK and 0 <= second <= MASK and 0 <= counter < 2**64):
            raise ValueError(f"the words of a key have 32 bits and the counter 64: {state}")
        return _with((first, second), counter, native)

    def words(self) -> tuple[int, int, int, int]:
        """Return the key and the counter as four 32-bit words: what :class:`TracedGenerator` takes as a tensor."""
        with self._lock:
            return (*self._key, self._counter >> 32, self._counter & MASK)

    def __reduce__(self) -> tuple[Any, ...]:
        return Generator.from_state, (self.state(),)

    def __repr__(self) -> str:
        first, second = self._key
        kind = ", native" if self.native else ""
        return f"<Generator {first:08x}{second:08x}, {self._counter} draws{kind}>"


class TracedGenerator:
    """The stream of a generator inside a function that is traced, where the state is a tensor argument.

    ``words`` are the four words of :meth:`Generator.words` as an int32, uint32 or int64 tensor of the active backend.
    The draws return what the generator itself would return; ``drawn`` counts them, for the caller to
    :meth:`Generator.skip` them.
    """

    __slots__ = ("_words", "drawn", "native")

    drawn: int
    native: bool

    def __init__(self, words: Any) -> None:
        self._words = words
        self.drawn = 0
        self.native = False

    def next_key(self) -> Key:
        """Return the key of the next draw, as a tensor of two int32."""
        from ember_ml.backend.selection import active

        number = self.drawn
        self.drawn = number + 1
        own = active().random
        if own is None:
            raise UnsupportedOp(f"the backend {active().name!r} draws no random numbers in a function that is traced")
        return own.derive(self._words, number)


SeedLike: TypeAlias = int | Generator | TracedGenerator


def _with(key: tuple[int, int], counter: int, native: bool) -> Generator:
    made = Generator(0, native)
    made._key, made._counter = key, counter
    return made


def _key_of(seed: int) -> tuple[int, int]:
    try:
        number = operator.index(seed)
    except TypeError as error:
        raise TypeError(f"a seed is an integer or a Generator, not {seed!r}") from error
    if not 0 <= number < 2**64:
        raise ValueError(f"a seed is an integer from 0 to 2**64 - 1, not {number}")
    return number >> 32, number & MASK


_process: Generator | None = None
_lock = threading.Lock()
_scope = threading.local()  # torch 2.13: torch.compile cannot trace a context variable


def default_generator() -> Generator:
    """Return the process-wide generator for draws without a seed; randomly seeded until :func:`seed` is called.

    >>> from ember_ml import ops
    >>> saved = ops.random.default_generator().state()
    >>> x = ops.random.uniform(2)
    >>> ops.random.seed(ops.Generator.from_state(saved))
    >>> ops.to_numpy(ops.random.uniform(2)).tolist() == ops.to_numpy(x).tolist()
    True
    """
    global _process
    if _process is None:
        with _lock:
            if _process is None:
                _process = Generator()
    return _process


def seed(seed: int | Generator) -> None:
    """Let the draws of the whole process that name no seed of their own start from ``seed``, or go on from a generator.

    >>> from ember_ml import ops
    >>> ops.seed(7)
    >>> x = ops.random_uniform(2)
    >>> ops.seed(7)
    >>> ops.to_numpy(ops.random_uniform(2)).tolist() == ops.to_numpy(x).tolist()
    True
    """
    global _process
    _process = seed if isinstance(seed, Generator) else Generator(seed)


class streaming:
    """Let the draws of this thread that name no seed come from ``generator`` inside the ``with`` block."""

    def __init__(self, generator: Generator | TracedGenerator) -> None:
        self.generator = generator

    def __enter__(self) -> Generator | TracedGenerator:
        self.before = lent()
        _scope.generator = self.generator
        return self.generator

    def __exit__(self, *exception: object) -> None:
        _scope.generator = self.before


def lent() -> Generator | TracedGenerator | None:
    """Return the generator that :class:`streaming` lends to this thread, if any."""
    return getattr(_scope, "generator", None)


def next_key(seed: SeedLike | None) -> tuple[Key, bool]:
    """Return the key for one draw, and whether the backend's own generator may serve it."""
    source = lent() or default_generator() if seed is None else seed
    if isinstance(source, Generator | TracedGenerator):
        return source.next_key(), source.native
    return first_key(source), False


def bookmark() -> Callable[[], Generator | TracedGenerator]:
    """Return a function that returns a generator at the present position of this thread's stream."""
    source = lent() or default_generator()
    if isinstance(source, Generator):
        state = source.state()
        return lambda: Generator.from_state(state)
    words, drawn = source._words, source.drawn

    def again() -> TracedGenerator:
        generator = TracedGenerator(words)
        generator.drawn = drawn
        return generator

    return again


def first_key(seed: int) -> tuple[int, int]:
    """Return the key of the first draw of a generator with that seed."""
    return block(_key_of(seed), 0)
