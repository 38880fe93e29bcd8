"""Threefry-2x32-20, the counter-based generator behind every portable random number, on the host.

A block turns a key and a counter, two 32-bit words each, into two words (Salmon, Moraes, Dror and Shaw, "Parallel
random numbers: as easy as 1, 2, 3", 2011). For ``n`` words there are ``m = ceil(n / 2)`` blocks: the one with the
counter ``(i, m + i)`` gives word ``i`` and word ``m + i``. MLX computes the same words in the same order by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ember_ml.backend.random.threads import run_in_threads, thread_limit

__all__ = [
    "CHUNK",
    "FEW",
    "LARGE_CHUNK",
    "MASK",
    "SHARE",
    "aligned",
    "block",
    "few_words",
    "fill",
    "lane_block",
    "lane_key",
    "signed",
]

MASK = 0xFFFFFFFF
CHUNK = 40960  # blocks at a time: what they need stays in the cache
# With threads, larger pieces: between two calls of NumPy a thread may have to wait for the interpreter's lock.
# 4 million normal numbers in two threads: 36 ms with CHUNK, 22 with 131072, 19 with this; in one thread 36.
LARGE_CHUNK = 262144
SHARE = 65536  # blocks for each thread: of half as many, starting it takes what it saves

FEW = 4  # blocks that cost less one by one than the calls that compute any number of them

Buffers = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
"""The numbers from 0 on, and three vectors of as many words."""

_PARITY = 0x1BD11BDA
_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_STEPS = tuple((step + 1, _ROTATIONS[step % 2]) for step in range(5))


def signed(word: int) -> int:
    """Return the 32-bit integer with the bits of ``word``."""
    return (word & MASK) - ((word & 0x80000000) << 1)


def block(key: tuple[int, int], counter: int) -> tuple[int, int]:
    """Return the two words of one block; the upper half of the 64-bit ``counter`` is its first word."""
    first, second = key
    keys = (first, second, first ^ second ^ _PARITY)
    x, y = (counter >> 32) + first & MASK, counter + second & MASK
    for step, (a, b, c, d) in _STEPS:  # four rounds written out, since each draw of a few numbers waits for two blocks
        x = x + y & MASK
        y = (y << a | y >> 32 - a) & MASK ^ x
        x = x + y & MASK
        y = (y << b | y >> 32 - b) & MASK ^ x
        x = x + y & MASK
        y = (y << c | y >> 32 - c) & MASK ^ x
        x = x + y & MASK
        y = (y << d | y >> 32 - d) & MASK ^ x
        x = x + keys[step % 3] & MASK
        y = y + keys[(step + 1) % 3] + step & MASK
    return x, y


def _as_it_is(x: Any) -> Any:
    return x


def lane_block(first: Any, second: Any, x: Any, y: Any, keep: Callable[[Any], Any] = _as_it_is) -> tuple[Any, Any]:
    """Return the two words of each block, for tensors of int32 counters, of any library whose integers wrap.

    The words of the key are int32 tensors. ``keep`` marks what is used more than once, for compilers that would write
    it out at each use: after twenty rounds that were a million times.
    """
    keys = (first, second, first ^ second ^ _PARITY)
    x, y = x + first, y + second
    for step in range(5):
        for turn in _ROTATIONS[step % 2]:
            x = keep(x + y)
            # a shift to the right repeats the sign, which the mask takes away
            y = keep(((y << turn) | ((y >> (32 - turn)) & ((1 << turn) - 1))) ^ x)
        x = x + keys[(step + 1) % 3]
        y = y + keys[(step + 2) % 3] + (step + 1)
    return x, y


def lane_key(
    words: tuple[Any, Any, Any, Any],
    number: int,
    as_integer: Callable[[Any], Any],
    keep: Callable[[Any], Any] = _as_it_is,
) -> tuple[Any, Any]:
    """Return the key that a generator gives ``number`` draws after a state of four words: its key and its counter.

    The words are int32 tensors of one element; ``as_integer`` makes int32 of bools.
    """
    first, second, upper, lower = words
    lower = lower + signed(number)
    carry = (lower ^ -(2**31)) < (number & MASK) - 2**31  # in the order of unsigned words
    return lane_block(first, second, upper + as_integer(carry), lower, keep)


def few_words(key: tuple[int, int], blocks: int) -> tuple[list[int], list[int]]:
    """Return the first and the second words of so many blocks, computed one by one."""
    pairs = [block(key, number << 32 | blocks + number) for number in range(blocks)]
    return [first for first, _ in pairs], [second for _, second in pairs]


def fill(out: np.ndarray, key: tuple[int, int], write: Callable[..., Any], wide: bool) -> None:
    """Fill the vector ``out``: ``write(piece, words)`` fills a piece of it; it gets two vectors of words if ``wide``.

    The words are uint32, in memory that is used again, so that it may change them. It works through the blocks in
    pieces that stay in the processor's cache, which is what makes it fast; those of a large draw are shared by threads,
    whose number changes no number that is drawn.
    """
    count = len(out)
    blocks = count if wide else (count + 1) // 2
    if blocks <= FEW:
        x, y = (np.array(side, dtype=np.uint32) for side in few_words(key, blocks))
        _write(out, 0, blocks, x, y, write, wide)
        return
    threads = max(min(blocks // SHARE, thread_limit()), 1)
    chunk = LARGE_CHUNK if threads > 1 else CHUNK
    pieces = -(-blocks // (threads * chunk)) * threads
    size = -(-blocks // pieces)  # the same for all but the last
    starts = iter(range(0, blocks, size))  # the next piece goes to the thread that asks first
    steps = _steps(key)

    def work() -> None:
        buffers = numbers, x, y, spare = _buffers(chunk)
        for start in starts:
            length = min(size, blocks - start)
            if length < len(x):
                numbers, x, y, spare = (part[:length] for part in (numbers, x, y, spare))
            np.add(numbers, _word(start + key[0] & MASK), x)
            np.add(numbers, _word(start + blocks + key[1] & MASK), y)
            _run(x, y, spare, steps)
            _write(out, start, blocks, x, y, write, wide)
        _free[chunk].append(buffers)

    run_in_threads(work, threads)


_free: dict[int, list[Buffers]] = {CHUNK: [], LARGE_CHUNK: []}


def _buffers(size: int) -> Buffers:
    """Return memory for pieces of ``size`` blocks that no thread uses now; who took it puts it back into ``_free``.

    New memory comes from the system page by page, which would take as long as a tenth of the words.
    """
    try:
        return _free[size].pop()
    except IndexError:
        numbers, x, y, spare = (aligned(size, np.dtype(np.uint32)) for _ in range(4))
        numbers[:] = np.arange(size)
        return numbers, x, y, spare


_LINE = 64  # bytes of the processor's cache


def aligned(count: int, dtype: np.dtype) -> np.ndarray:
    """Return a vector that begins with a line of the cache, as PyTorch's tensors do: processors read it faster."""
    memory = np.empty(count * dtype.itemsize + _LINE, dtype=np.uint8)
    first = -memory.ctypes.data % _LINE
    return memory[first : first + count * dtype.itemsize].view(dtype)


def _write(
    out: np.ndarray, start: int, blocks: int, x: np.ndarray, y: np.ndarray, write: Callable[..., Any], wide: bool
) -> None:
    """Fill what belongs to the words of the blocks from ``start`` on, of so many in all."""
    end = start + len(x)
    if wide:
        write(out[start:end], x, y)
        return
    write(out[start:end], x)
    rest = out[blocks + start : blocks + end]
    if len(rest):
        write(rest, y[: len(rest)])


def _steps(key: tuple[int, int]) -> list[tuple[list[tuple[np.ndarray, np.ndarray]], np.ndarray, np.ndarray]]:
    """Return the rotations, left and right, and the two words added after them, of each of the five steps.

    They are 0-d arrays, which NumPy's functions need not convert as they do its numbers.
    """
    keys = (key[0], key[1], key[0] ^ key[1] ^ _PARITY)
    return [
        (_TURNS[step % 2], _word(keys[(step + 1) % 3]), _word(keys[(step + 2) % 3] + step + 1 & MASK))
        for step in range(5)
    ]


def _word(value: int) -> np.ndarray:
    return np.array(value, dtype=np.uint32)


_TURNS = [[(_word(turn), _word(32 - turn)) for turn in turns] for turns in _ROTATIONS]


def _run(x: np.ndarray, y: np.ndarray, spare: np.ndarray, steps: list[Any]) -> None:
    """The twenty rounds, in place."""
    add, shift_left, shift_right, xor = np.add, np.left_shift, np.right_shift, np.bitwise_xor
    for turns, first, second in steps:
        for left, right in turns:
            add(x, y, x)
            shift_right(y, right, spare)
            shift_left(y, left, y)
            xor(spare, x, spare)
            xor(y, spare, y)
        add(x, first, x)
        add(y, second, y)
