"""Random numbers on JAX: by JAX in compiled functions and on other devices than the CPU, by the host else."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ember_ml.backend.jax.host_transfer import adopt, device_named, dtypes, from_host
from ember_ml.backend.random.distributions import Variate
from ember_ml.backend.random.generator import Key, next_key
from ember_ml.backend.random.lanes import Lanes
from ember_ml.backend.random.threefry import lane_block, lane_key, signed

__all__ = ["adopt", "constant", "derive", "draw", "native", "next_key", "order", "takes"]


def derive(words: jax.Array, number: int) -> jax.Array:
    words = words.view(jnp.int32) if words.dtype == jnp.uint32 else words.astype(jnp.int32)
    state = (words[0], words[1], words[2], words[3])
    return jnp.stack(lane_key(state, number, lambda x: x.astype(jnp.int32)))


# JAX 0.11: on a GPU XLA makes one rounding of a product and a sum, which changes the last bit of these formulas
_BY_THE_HOST = frozenset({"normal", "truncated_normal", "exponential", "laplace", "gumbel"})


def takes(variate: Variate, key: Key, device: str | None) -> bool:
    return type(key) is not tuple or (device != "cpu" and variate.name not in _BY_THE_HOST)


_LANES = Lanes(jnp, dtypes)


def draw(variate: Variate, key: Key, shape: tuple[int, ...], device: str | None) -> jax.Array:
    if type(key) is tuple:
        key = from_host(np.array([signed(word) for word in key], np.int32), device)
    return _draw(variate, key, shape)


@partial(jax.jit, static_argnums=(0, 2))
def _draw(variate: Variate, key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    count = math.prod(shape)
    if not count:
        return jnp.zeros(shape, dtypes[variate.dtype])
    blocks = count if variate.wide else (count + 1) // 2
    numbers = jnp.arange(blocks, dtype=jnp.int64).astype(jnp.int32)
    first, second = lane_block(key[0], key[1], numbers, numbers + signed(blocks))
    parts = (first, second) if variate.wide else (jnp.concatenate([first, second])[:count],)
    return variate.formula(_LANES, *parts).reshape(shape)


def constant(compute: Callable[..., Any], device: str | None, *data: Any) -> jax.Array:
    return from_host(compute(*data), device)


def order(words: jax.Array) -> jax.Array:
    return jnp.argsort(words).astype(jnp.int64)


def _drawing(sample: Callable[..., jax.Array]) -> Callable[..., jax.Array]:
    def draw(seed: int, shape: tuple[int, ...], dtype: Any, device: str | None, *parameters: Any) -> jax.Array:
        # JAX 0.10: seeds are int64
        key = jax.device_put(jax.random.key(signed64(seed)), device_named(device))
        return sample(key, shape, dtype, *parameters)

    return draw


def signed64(seed: int) -> int:
    """Return the 64-bit integer with the bits of ``seed``."""
    return seed - ((seed >> 63) << 64)


def _bernoulli(key: jax.Array, shape: tuple[int, ...], dtype: Any, p: float) -> jax.Array:
    return jax.random.bernoulli(key, p, shape)


_NATIVE = {
    "uniform": _drawing(jax.random.uniform),
    "normal": _drawing(jax.random.normal),
    "exponential": _drawing(jax.random.exponential),
    "laplace": _drawing(jax.random.laplace),
    "gumbel": _drawing(jax.random.gumbel),
    "bernoulli": _drawing(_bernoulli),
}


def native(variate: Variate) -> Callable[..., Any] | None:
    return _NATIVE.get(variate.name)
