"""Where quantiles stand: the probabilities, read on the host, and their positions among sorted elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from ember_ml import dtypes as dt
from ember_ml.backend.host import as_host

__all__ = ["positions", "read_probabilities"]


def read_probabilities(q: Any, whole: float = 1.0) -> np.ndarray:
    """``q``, a number or several between 0 and ``whole``, as float64 fractions of it."""
    probabilities = as_host(q, dt.float64) / whole
    if not ((probabilities >= 0.0) & (probabilities <= 1.0)).all():
        raise ValueError(f"q must lie between 0 and {whole:g}, but is {q}")
    return np.asarray(probabilities)


def positions(n: int, probabilities: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The neighbours between which each quantile of ``n`` sorted elements lies, and how far from the lower one."""
    exact = probabilities.ravel() * (n - 1)
    below = np.floor(exact).astype(np.int64)
    weight = exact - below
    return below, below + (weight > 0), weight
