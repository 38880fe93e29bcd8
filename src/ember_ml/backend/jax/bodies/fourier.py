"""Fourier transforms, on JAX."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp

from ember_ml.backend.common.signal import check_norm, lengths_and_axes

_HALF_OUT = (jnp.fft.rfftn,)
_HALF_IN = (jnp.fft.irfftn,)
_REAL = (*_HALF_OUT, *_HALF_IN)


def _one(native: Callable[..., jax.Array]) -> Callable[..., jax.Array]:
    transform = _several(native)

    def body(x: jax.Array, n: int | None, axis: int, norm: str) -> jax.Array:
        return transform(x, None if n is None else (n,), (axis,), norm)

    return body


def _several(native: Callable[..., jax.Array]) -> Callable[..., jax.Array]:
    def body(x: jax.Array, s: Sequence[int] | None, axes: Sequence[int] | None, norm: str) -> jax.Array:
        check_norm(norm)
        lengths, found = lengths_and_axes(x.shape, s, axes, native in _HALF_IN)
        if not found:
            if native in _REAL:
                raise ValueError("a real transform needs at least one axis")
            return x.astype(jnp.result_type(x.dtype, jnp.complex64))
        if not x.size:
            return _transform_empty(native, x, lengths, found)
        return native(x, lengths, found, norm)

    return body


def _transform_empty(
    native: Callable[..., jax.Array], x: jax.Array, lengths: tuple[int, ...], axes: tuple[int, ...]
) -> jax.Array:
    """Return the transform of an array without elements: zeros, where padding adds elements at all."""
    shape = list(x.shape)
    for n, axis in zip(lengths, axes, strict=True):
        shape[axis] = n
    if native in _HALF_OUT:
        shape[axes[-1]] = lengths[-1] // 2 + 1
    wide = jnp.result_type(x.dtype, jnp.complex64)
    return jnp.zeros(shape, jnp.finfo(wide).dtype if native in _HALF_IN else wide)


fft = _one(jnp.fft.fftn)
ifft = _one(jnp.fft.ifftn)
rfft = _one(jnp.fft.rfftn)
irfft = _one(jnp.fft.irfftn)
fftn = _several(jnp.fft.fftn)
ifftn = _several(jnp.fft.ifftn)
rfftn = _several(jnp.fft.rfftn)
irfftn = _several(jnp.fft.irfftn)
