"""Reading and replacing parts of tensors, on NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from ember_ml.backend import checks
from ember_ml.backend.keys import spans


def get_item(x: np.ndarray, key: tuple[Any, ...]) -> Any:
    return x[key if checks.enabled else _clamped(key, x.shape)]


def index_update(x: np.ndarray, key: tuple[Any, ...], values: np.ndarray) -> np.ndarray:
    result = x.copy()
    result[key if checks.enabled else _clamped(key, x.shape)] = values
    return result


def _is_mask(item: np.ndarray) -> bool:
    return item.dtype == np.bool_


def _clamped(key: tuple[Any, ...], shape: tuple[int, ...]) -> tuple[Any, ...]:
    """The key with the values of its index tensors in range."""
    return tuple(
        np.clip(item, -shape[axis], shape[axis] - 1) if isinstance(item, np.ndarray) and not _is_mask(item) else item
        for item, axis, _ in spans(key, len(shape), _is_mask)
    )
