"""Gradients on NumPy, which has none of its own: hand-written vjps and sums for the tape."""

from __future__ import annotations

import numpy as np

from ember_ml.backend.numpy.vjps import basic, convolution, neural, normalizations, pooling

__all__ = ["accumulate", "vjps"]

vjps = {}
for _family in (basic, convolution, neural, normalizations, pooling):
    vjps |= _family.VJPS


def accumulate(total: np.ndarray, gradient: np.ndarray) -> np.ndarray:
    """Return the sum, in the memory of ``total``."""
    total += gradient
    return total
