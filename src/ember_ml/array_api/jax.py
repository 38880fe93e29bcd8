"""The array API standard's namespace on JAX."""

from __future__ import annotations

from ember_ml.array_api.build import fill

fill(globals(), "jax")
