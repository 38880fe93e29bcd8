"""Creation of tensors, on JAX."""

from __future__ import annotations

import operator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ember_ml.backend.common.ranges import host_arange
from ember_ml.backend.common.shapes import as_shape, grid
from ember_ml.backend.contract import Body
from ember_ml.backend.jax.host_transfer import checked, from_host, placement
from ember_ml.backend.jax.jitting import static
from ember_ml.core.dtypes import find_dtype

_FLOAT = np.dtype(np.float32)


def _filled(native: Body) -> Body:
    compiled = static(0, 1)(native)

    def body(shape: Any, dtype: np.dtype | None, device: str) -> jax.Array:
        dtype, place = dtype or _FLOAT, placement(device)
        if place is None:
            return checked(compiled(as_shape(shape), dtype), dtype)
        return checked(native(as_shape(shape), dtype, device=place), dtype)

    return body


zeros = _filled(jnp.zeros)
ones = _filled(jnp.ones)
empty = zeros  # JAX has no uninitialized arrays


def eye(n_rows: Any, n_cols: Any, k: int, dtype: np.dtype | None, device: str) -> jax.Array:
    rows, columns = shape = as_shape((n_rows, n_rows if n_cols is None else n_cols))
    if not -rows < k < columns:  # JAX 0.10: k must fit 32 bits
        return zeros(shape, dtype, device)
    return jnp.eye(rows, columns, operator.index(k), dtype or _FLOAT, device=placement(device))


def arange(start: Any, stop: Any, step: Any, dtype: np.dtype | None, device: str) -> jax.Array:
    return from_host(host_arange(start, stop, step, find_dtype(dtype)), device)


def meshgrid(arrays: list[jax.Array], indexing: str) -> tuple[jax.Array, ...]:
    shapes = [(own, shape) for _, own, shape in grid(arrays, indexing)]
    return _spread(tuple(arrays), tuple(shapes))


@static(1)
def _spread(arrays: tuple[jax.Array, ...], shapes: tuple[Any, ...]) -> tuple[jax.Array, ...]:
    return tuple(jnp.broadcast_to(x.reshape(own), shape) for x, (own, shape) in zip(arrays, shapes, strict=True))
