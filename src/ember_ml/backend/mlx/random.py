"""Random numbers on MLX, from the words of its own generator: ``split`` is Threefry in the same layout."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import mlx.core as mx

from ember_ml.backend.mlx.bodies.sorting import argsort
from ember_ml.backend.mlx.host_transfer import check_device, dtypes, from_host
from ember_ml.backend.random.distributions import Variate
from ember_ml.backend.random.generator import Key, next_key
from ember_ml.backend.random.lanes import Lanes
from ember_ml.backend.random.threefry import block, lane_block, lane_key, signed
from ember_ml.core.dtypes import float64

__all__ = ["adopt", "constant", "derive", "draw", "native", "next_key", "order", "takes", "words_by_ops"]


def derive(words: mx.array, number: int) -> mx.array:
    words = mx.view(words, mx.int32) if words.dtype == mx.uint32 else words.astype(mx.int32)
    state = (words[0], words[1], words[2], words[3])
    return mx.stack(list(lane_key(state, number, lambda x: x.astype(mx.int32))))


_BY_HOST = frozenset({"uniform", "normal", "truncated_normal", "exponential", "laplace", "gumbel"})


def takes(variate: Variate, key: Key, device: str | None) -> bool:
    # MLX 0.32: one pass over memory for each step of a formula, which on the CPU takes longer than the host
    return type(key) is not tuple or device != "cpu" or variate.name not in _BY_HOST


_LANES = Lanes(mx, dtypes)


def draw(variate: Variate, key: Key, shape: tuple[int, ...], device: str | None) -> mx.array:
    check_device(device)
    count = math.prod(shape)
    if not count:
        return mx.zeros(shape, dtypes[variate.dtype])
    words = _words(key, count if variate.wide else (count + 1) // 2)
    parts = (words[:count], words[count:]) if variate.wide else (words[:count],)
    return variate.formula(_LANES, *parts).reshape(shape)


def _words(key: Key, blocks: int) -> mx.array:
    """Return the words of so many blocks as int32: the first ones, then the second ones."""
    if type(key) is tuple:
        key = mx.array(key, dtype=mx.uint32)
    if _splits_as_known():
        return mx.view(mx.random.split(mx.view(key, mx.uint32), blocks), mx.int32).reshape(-1)
    return words_by_ops(mx.view(key, mx.int32), blocks)


def words_by_ops(key: mx.array, blocks: int) -> mx.array:
    """Compute the same words by MLX's arithmetic, for a version whose ``split`` returns others."""
    numbers = mx.arange(blocks, dtype=mx.int64).astype(mx.int32)
    return mx.concatenate(list(lane_block(key[0], key[1], numbers, numbers + signed(blocks))))


@cache
def _splits_as_known() -> bool:
    """Whether ``split`` returns the words of Threefry in our order, which MLX does not promise."""
    key = (0x13198A2E, 0x03707344)
    known = [block(key, number << 32 | 3 + number) for number in range(3)]
    found: Any = mx.random.split(mx.array(key, dtype=mx.uint32), 3).reshape(-1).tolist()
    return found == [words[half] for half in range(2) for words in known]


adopt = from_host  # MLX 0.32: shares no memory with NumPy


def constant(compute: Callable[..., Any], device: str | None, *data: Any) -> mx.array:
    return from_host(compute(*data), device)


def order(words: mx.array) -> mx.array:
    return argsort(words, 0, False, True)


def _uniform(seed: int, shape: tuple[int, ...], dtype: mx.Dtype, device: str | None) -> mx.array:
    return mx.random.uniform(shape=shape, dtype=dtype, key=mx.random.key(seed))


def _normal(seed: int, shape: tuple[int, ...], dtype: mx.Dtype, device: str | None) -> mx.array:
    return mx.random.normal(shape, dtype, key=mx.random.key(seed))


def _bernoulli(seed: int, shape: tuple[int, ...], dtype: mx.Dtype, device: str | None, p: float) -> mx.array:
    return mx.random.bernoulli(p, shape, key=mx.random.key(seed))


_NATIVE = {"uniform": _uniform, "normal": _normal, "bernoulli": _bernoulli}


def native(variate: Variate) -> Callable[..., Any] | None:
    return None if variate.dtype is float64 else _NATIVE.get(variate.name)
