"""Running sums and correlation, on JAX."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from ember_ml.backend.common.axes import axis_of
from ember_ml.backend.common.signal import overhang
from ember_ml.backend.contract import Body
from ember_ml.backend.jax.bodies.reductions import wide_dtype
from ember_ml.backend.jax.half_precision import widen
from ember_ml.backend.jax.host_transfer import cast
from ember_ml.backend.jax.jitting import static


def _running(native: Callable[..., jax.Array]) -> Body:
    @static(1, 2)
    def body(x: jax.Array, axis: int | None, dtype: np.dtype | None) -> jax.Array:
        if dtype is not None:
            x = cast(x, dtype)
        wide = widen(x).astype(wide_dtype(widen(x).dtype))
        result = native(wide, None if axis is None else axis_of(axis, x.ndim))
        return result if dtype is None and x.dtype.kind in "iub" else cast(result, x.dtype)

    return body


cumsum = _running(jnp.cumsum)
cumprod = _running(jnp.cumprod)


@static(2)
def correlate(x: jax.Array, y: jax.Array, mode: str) -> jax.Array:
    before_and_after = overhang(x.shape, y.shape, mode)  # which checks both
    if x.shape[0] < y.shape[0]:
        return jnp.conj(correlate(y, x, mode))[::-1]
    wide = jnp.pad(widen(x), before_and_after)
    places = np.arange(wide.shape[0] - y.shape[0] + 1)[:, None] + np.arange(y.shape[0])
    return jnp.sum(wide[places] * jnp.conj(widen(y)), -1, dtype=wide.dtype).astype(x.dtype)
