"""Special functions on JAX."""

from __future__ import annotations

from jax import lax
from jax.scipy import special

from ember_ml.backend.contract import ByDType
from ember_ml.backend.jax.half_precision import in_float32
from ember_ml.backend.jax.jitting import jitted

erf = ByDType(jitted(lax.erf), in_float32(lax.erf))
erfc = ByDType(jitted(lax.erfc), in_float32(lax.erfc))
erfinv = ByDType(jitted(lax.erf_inv), in_float32(lax.erf_inv))
lgamma = ByDType(jitted(lax.lgamma), in_float32(lax.lgamma))
digamma = ByDType(jitted(lax.digamma), in_float32(lax.digamma))
i0 = ByDType(jitted(special.i0), in_float32(special.i0))
