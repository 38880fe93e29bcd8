"""Conversion between dtypes, on JAX."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ember_ml.backend.jax.jitting import jitted, static

copy = jnp.copy  # in memory of its own: an update of parameters uses that of the old ones again


stop_gradient = jitted(lax.stop_gradient)


@static(1)
def view(x: jax.Array, dtype: np.dtype) -> jax.Array:
    if not x.ndim and x.dtype.itemsize == dtype.itemsize:
        return view(x[None], dtype)[0]
    # JAX 0.10: takes no view of bools, and makes complex numbers by a sum, in which infinities become NaN
    if x.dtype.kind == "b":
        x = x.astype(jnp.uint8)
    elif x.dtype.kind == "c":
        x = jnp.stack([x.real, x.imag], -1).reshape(*x.shape[:-1], -1)
    if dtype.kind == "b":
        return x.view(jnp.uint8) != 0
    if dtype.kind == "c":
        parts = x.view(np.dtype(f"float{4 * dtype.itemsize}"))
        return lax.complex(parts[..., ::2], parts[..., 1::2])
    return x.view(dtype)
