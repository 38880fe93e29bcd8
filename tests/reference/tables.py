"""Tables of numbers to fit estimators to, and comparison with what scikit-learn learns from them."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.datasets import make_low_rank_matrix

__all__ = ["assert_close", "columns", "low_rank", "wide", "with_gaps"]


def columns(rows: int = 60, count: int = 5, dtype: str = "float64", offset: float = 0.0) -> np.ndarray:
    """Columns that depend on each other, of different deviations, around an offset."""
    random = np.random.default_rng([rows, count])
    mixed = random.normal(size=(rows, count)) @ random.normal(size=(count, count))
    return (mixed * np.arange(1, count + 1) + offset).astype(dtype)


def with_gaps() -> np.ndarray:
    """Columns that miss values; the last one has none in the first half of the rows."""
    data = columns(20, 4)
    data[[3, 9], 0] = data[5, 2] = np.nan
    data[:10, 3] = np.nan
    return data


def low_rank(rows: int, count: int, dtype: str = "float64", offset: float = 0.0, rank: int | None = None) -> np.ndarray:
    """Data whose first components stand out clearly; with ``rank`` there are no others."""
    if rank is not None:
        return low_rank(rows, rank) @ low_rank(rank, count)
    return (make_low_rank_matrix(rows, count, effective_rank=4, random_state=0) * 100.0 + offset).astype(dtype)


def wide(data: np.ndarray) -> np.ndarray:
    """The same numbers in float64."""
    return data.astype(np.float64)


def assert_close(found: Any, expected: Any, tolerance: float = 1e-5) -> None:
    """Agreement to ``tolerance`` of the largest expected value."""
    expected = np.asarray(expected, dtype=np.float64)
    size = np.nanmax(np.abs(expected), initial=0.0)
    np.testing.assert_allclose(np.asarray(found, dtype=np.float64), expected, rtol=0.0, atol=tolerance * size)
