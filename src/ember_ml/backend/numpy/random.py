"""Random numbers of NumPy's own generator; the portable ones are computed on the host, which is NumPy."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ember_ml.backend.random.distributions import Variate
from ember_ml.backend.random.draw import host_draw
from ember_ml.backend.random.generator import Key, next_key
from ember_ml.backend.random.threefry import block

__all__ = ["adopt", "constant", "derive", "draw", "native", "next_key", "order", "takes"]


def takes(variate: Variate, key: Key, device: str | None) -> bool:
    return False  # the host's numbers are NumPy's


def draw(variate: Variate, key: Key, shape: tuple[int, ...], device: str | None) -> np.ndarray:
    return host_draw(variate, key, math.prod(shape)).reshape(shape)


def adopt(array: np.ndarray, device: str | None) -> np.ndarray:
    return array


def constant(compute: Callable[..., np.ndarray], device: str | None, *data: Any) -> np.ndarray:
    return compute(*data)


def order(words: np.ndarray) -> np.ndarray:
    return np.argsort(words, kind="stable")


def derive(words: np.ndarray, number: int) -> tuple[int, int]:
    first, second, upper, lower = (int(word) & 0xFFFFFFFF for word in words)
    return block((first, second), (upper << 32 | lower) + number)


def _generator(seed: int) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(seed))


def _uniform(seed: int, shape: tuple[int, ...], dtype: Any, device: str | None) -> np.ndarray:
    return _generator(seed).random(shape, dtype)


def _normal(seed: int, shape: tuple[int, ...], dtype: Any, device: str | None) -> np.ndarray:
    return _generator(seed).standard_normal(shape, dtype)


def _exponential(seed: int, shape: tuple[int, ...], dtype: Any, device: str | None) -> np.ndarray:
    return _generator(seed).standard_exponential(shape, dtype)


def _bernoulli(seed: int, shape: tuple[int, ...], dtype: Any, device: str | None, p: float) -> np.ndarray:
    return _generator(seed).random(shape, np.float32) < np.float32(p)


_NATIVE = {"uniform": _uniform, "normal": _normal, "exponential": _exponential, "bernoulli": _bernoulli}


def native(variate: Variate) -> Callable[..., Any] | None:
    return _NATIVE.get(variate.name)
