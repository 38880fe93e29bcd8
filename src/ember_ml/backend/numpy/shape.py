"""Shapes, on NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from ember_ml.backend.shapes import as_shape

reshape = np.ndarray.reshape


def broadcast_to(x: np.ndarray, shape: Any) -> np.ndarray:
    return np.broadcast_to(x, as_shape(shape))
