"""Reductions, on JAX. XLA adds in blocks, so that sums of float32 lose no digits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ember_ml.backend.common.axes import axes_of, axis_of, check_initial, count_along, reduced_shape
from ember_ml.backend.contract import Body
from ember_ml.backend.jax.bodies.float_bits import is_true
from ember_ml.backend.jax.half_precision import HALVES, widen
from ember_ml.backend.jax.host_transfer import cast
from ember_ml.backend.jax.jitting import static


def _from_front(axis: Any, ndim: int) -> Any:
    if axis is None:
        return None
    return axes_of(axis, ndim) if isinstance(axis, tuple | list) else axis_of(axis, ndim)


def wide_dtype(dtype: np.dtype) -> np.dtype:
    """Return the dtype in which elements are added up: 64 bits for integers and bools."""
    return np.dtype(np.uint64) if dtype.kind == "u" else np.dtype(np.int64) if dtype.kind in "ib" else dtype


def _accumulating(native: Callable[..., jax.Array]) -> Body:
    @static(1, 2)
    def compiled(x: jax.Array, axis: Any, keepdims: bool) -> jax.Array:
        wide = widen(x)
        result = native(wide, axis, wide_dtype(wide.dtype), keepdims=keepdims)
        return result.astype(x.dtype) if x.dtype in HALVES else result

    def body(x: jax.Array, axis: Any, dtype: np.dtype | None, keepdims: bool) -> jax.Array:
        if dtype is not None and dtype != x.dtype:
            x = cast(x, dtype)
        result = compiled(x, _from_front(axis, x.ndim), keepdims)
        return result if dtype is None else cast(result, dtype)

    return body


def _over_axes(native: Callable[..., jax.Array]) -> Body:
    """Compile ``native(x, axis, keepdims)``."""
    compiled = static(1, 2)(native)

    def body(x: jax.Array, axis: Any, keepdims: bool) -> jax.Array:
        return compiled(x, _from_front(axis, x.ndim), keepdims)

    return body


def _mean(x: jax.Array, axis: Any, keepdims: bool) -> jax.Array:
    return jnp.mean(widen(x), axis, keepdims=keepdims).astype(x.dtype)


def _logsumexp(x: jax.Array, axis: Any, keepdims: bool) -> jax.Array:
    wide = widen(x)
    if not x.size:
        return jnp.log(jnp.sum(wide, axis, keepdims=keepdims)).astype(x.dtype)
    return jax.nn.logsumexp(wide, axis, keepdims=keepdims).astype(x.dtype)


def _extreme(native: Callable[..., jax.Array], of_two: Callable[..., jax.Array]) -> Body:
    @static(1, 2)
    def compiled(x: jax.Array, axis: Any, keepdims: bool, initial: jax.Array | None) -> jax.Array:
        if initial is None:
            return native(x, axis, keepdims=keepdims)
        axes = tuple(range(x.ndim)) if axis is None else (axis,) if isinstance(axis, int) else axis
        if not count_along(x.shape, axes):
            return jnp.broadcast_to(initial, reduced_shape(x.shape, axes, keepdims))
        return of_two(native(x, axis, keepdims=keepdims), initial)

    def body(x: jax.Array, axis: Any, keepdims: bool, initial: jax.Array | None) -> jax.Array:
        if initial is not None:
            check_initial(initial)
        return compiled(x, _from_front(axis, x.ndim), keepdims, initial)

    return body


def _index(native: Callable[..., jax.Array]) -> Callable[..., jax.Array]:
    def find(x: jax.Array, axis: int | None, keepdims: bool) -> jax.Array:
        return native(jax.lax.stop_gradient(x), axis, keepdims=keepdims).astype(jnp.int64)

    return find


def _logic(native: Callable[..., jax.Array]) -> Callable[..., jax.Array]:
    def reduce(x: jax.Array, axis: Any, keepdims: bool) -> jax.Array:
        return native(is_true(x), axis, keepdims=keepdims)  # JAX 0.10: looks at the real part alone

    return reduce


def _count(x: jax.Array, axis: Any, keepdims: bool) -> jax.Array:
    return jnp.sum(is_true(x), axis, dtype=jnp.int64, keepdims=keepdims)


@static(1, 2, 3)
def _variance(x: jax.Array, axis: Any, correction: float, keepdims: bool) -> jax.Array:
    wide = widen(x)
    deviation = wide - jnp.mean(wide, axis, keepdims=True)
    square = jnp.square(deviation.real) + jnp.square(deviation.imag) if x.dtype.kind == "c" else jnp.square(deviation)
    freedom = count_along(x.shape, axis) - correction
    total = jnp.sum(square, axis, keepdims=keepdims)
    return (total / np.asarray(freedom if freedom > 0 else 0, total.dtype)).astype(square.dtype)


@static(1, 2, 3)
def _deviation(x: jax.Array, axis: Any, correction: float, keepdims: bool) -> jax.Array:
    variance = _variance(x, axis, correction, keepdims)
    is_zero = variance == 0  # there the gradient of the root is infinite
    return jnp.where(is_zero, 0, jnp.sqrt(jnp.where(is_zero, 1, variance)))


def var(x: jax.Array, axis: Any, correction: float, keepdims: bool) -> jax.Array:
    return _in_own_dtype(_variance(x, _from_front(axis, x.ndim), correction, keepdims), x)


def std(x: jax.Array, axis: Any, correction: float, keepdims: bool) -> jax.Array:
    return _in_own_dtype(_deviation(x, _from_front(axis, x.ndim), correction, keepdims), x)


def _in_own_dtype(result: jax.Array, x: jax.Array) -> jax.Array:
    return result if x.dtype.kind == "c" or result.dtype == x.dtype else cast(result, x.dtype)


sum = _accumulating(jnp.sum)
prod = _accumulating(jnp.prod)
mean = _over_axes(_mean)
logsumexp = _over_axes(_logsumexp)
max = _extreme(jnp.max, jnp.maximum)
min = _extreme(jnp.min, jnp.minimum)
argmax = _over_axes(_index(jnp.argmax))
argmin = _over_axes(_index(jnp.argmin))
all = _over_axes(_logic(jnp.all))
any = _over_axes(_logic(jnp.any))
count_nonzero = _over_axes(_count)
