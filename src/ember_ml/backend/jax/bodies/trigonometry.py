"""Circular and hyperbolic functions on JAX."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from ember_ml.backend.common import special as formulas
from ember_ml.backend.contract import Body, ByDType
from ember_ml.backend.jax.half_precision import in_float32
from ember_ml.backend.jax.jitting import jitted
from ember_ml.core import dtypes as dt

sin = jitted(jnp.sin)
cos = jitted(jnp.cos)
tan = jitted(jnp.tan)
arcsin = jitted(jnp.arcsin)
arccos = jitted(jnp.arccos)
arctan = jitted(jnp.arctan)
arctan2 = jitted(jnp.arctan2)
tanh = jitted(jnp.tanh)
arccosh = jitted(jnp.arccosh)
arctanh = jitted(jnp.arctanh)
hypot = ByDType(jitted(jnp.hypot), in_float32(jnp.hypot))
deg2rad = ByDType(jitted(jnp.deg2rad), in_float32(jnp.deg2rad))
rad2deg = ByDType(jitted(jnp.rad2deg), in_float32(jnp.rad2deg))


# JAX 0.10: adds log(1/2) to the argument of the exponential, and so rounds it before that magnifies the error
@jitted
def _cosh(x: jax.Array) -> jax.Array:
    up, down = jnp.exp(x / 2), jnp.exp(-x / 2)  # twice, since the whole would overflow first
    return (0.5 * up) * up + (0.5 * down) * down


@jitted
def _sinh(x: jax.Array) -> jax.Array:
    up, down = jnp.exp(x / 2), jnp.exp(-x / 2)
    return jnp.where(jnp.abs(x) < 1, jnp.sinh(x), (0.5 * up) * up - (0.5 * down) * down)


def _complex_hyperbolic(native: Body, even: Body, odd: Body) -> dict[dt.EmberDType, Body]:
    """Return bodies by the functions of the real part; by ``native`` where they overflow or are not finite."""

    @jitted
    def body(x: jax.Array) -> jax.Array:
        limit = 80.0 if x.dtype == jnp.complex64 else 700.0
        is_plain = (jnp.abs(x.real) < limit) & jnp.isfinite(x.imag)
        a, b = jnp.where(is_plain, x.real, 0), jnp.where(is_plain, x.imag, 0)
        return jnp.where(is_plain, lax.complex(even(a) * jnp.cos(b), odd(a) * jnp.sin(b)), native(x))

    return dict.fromkeys(dt.COMPLEX, body)


cosh = ByDType(_cosh, _complex_hyperbolic(jnp.cosh, _cosh, _sinh) | in_float32(_cosh))
sinh = ByDType(_sinh, _complex_hyperbolic(jnp.sinh, _sinh, _cosh) | in_float32(_sinh))


@jitted
def _complex_arcsinh(x: jax.Array) -> jax.Array:
    # JAX 0.10: on the imaginary axis, the real part of the result has the sign of 0 rather than of -0
    is_negative = jnp.signbit(x.real)
    positive = jnp.arcsinh(jnp.where(is_negative, -x, x))
    return jnp.where(is_negative, -positive, positive)


arcsinh = ByDType(jitted(jnp.arcsinh), dict.fromkeys(dt.COMPLEX, _complex_arcsinh))


@jitted
def _sinc(x: jax.Array) -> jax.Array:
    return formulas.sinc(jnp, jnp.sin, x)


sinc = ByDType(_sinc, in_float32(_sinc))
