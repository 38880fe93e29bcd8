"""Find distinct values and bins on NumPy arrays, for every backend: NumPy sorts fastest on a CPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ember_ml.backend.common.named_results import UniqueAllResult, UniqueCountsResult, UniqueInverseResult
from ember_ml.backend.contract import Body
from ember_ml.backend.host_arrays import as_host, host_dtypes
from ember_ml.core.dtypes import bfloat16

__all__ = ["descends", "histogram_edges", "unique_ops", "unique_parts"]


def unique_parts(x: np.ndarray, index: bool, inverse: bool, counts: bool) -> tuple[np.ndarray, ...]:
    """Return the distinct values in ascending order; on request first occurrences, inverse indices and counts."""
    if x.dtype == host_dtypes[bfloat16]:  # NumPy 2.4 with ml_dtypes 0.6: sorts NaN to any position
        values, *rest = unique_parts(x.astype(np.float32), index, inverse, counts)
        return values.astype(x.dtype), *rest
    parts = np.unique(x, return_index=index, return_inverse=inverse, return_counts=counts, equal_nan=False)
    values, *rest = parts if isinstance(parts, tuple) else (parts,)
    if inverse and values.size and values[-1] != values[-1]:  # NumPy 2.4: numbers NaN in any order
        is_nan = np.isnan(x)
        count = np.count_nonzero(is_nan)
        rest[int(index)][is_nan] = np.arange(len(values) - count, len(values))
    return values, *rest


def unique_ops(parts: Callable[[Any, bool, bool, bool], Sequence[Any]]) -> tuple[Body, Body, Body, Body]:
    """Return ``unique_values``, ``unique_all``, ``unique_counts`` and ``unique_inverse`` made of ``unique_parts``."""

    def unique_values(x: Any) -> Any:
        return parts(x, False, False, False)[0]

    def unique_all(x: Any) -> UniqueAllResult:
        return UniqueAllResult(*parts(x, True, True, True))

    def unique_counts(x: Any) -> UniqueCountsResult:
        return UniqueCountsResult(*parts(x, False, False, True))

    def unique_inverse(x: Any) -> UniqueInverseResult:
        return UniqueInverseResult(*parts(x, False, True, False))

    return unique_values, unique_all, unique_counts, unique_inverse


def descends(bins: np.ndarray) -> bool:
    """Whether the edges go down; ``ValueError`` where they go neither up nor down."""
    if bins.ndim != 1:
        raise ValueError(f"bins have one dimension, not the shape {bins.shape}")
    if np.all(bins[1:] >= bins[:-1]):
        return False
    if np.all(bins[1:] <= bins[:-1]):
        return True
    raise ValueError("bins must ascend or descend")


def histogram_edges(x: Any, bins: Any, span: tuple[float, float] | None) -> np.ndarray:
    """Return the edges of a histogram's bins, in double precision."""
    if not isinstance(bins, int):
        edges = as_host(bins)
        if edges.ndim == 0:
            raise TypeError(f"bins is the number of bins, an int, or a tensor of edges, not {bins!r}")
        if descends(edges) or len(edges) < 2:
            raise ValueError("the edges of a histogram ascend, and are at least two")
        return edges
    if bins < 1:
        raise ValueError(f"a histogram has at least one bin, not {bins}")
    if span is None:
        values = as_host(x)
        span = (values.min(), values.max()) if values.size else (0.0, 1.0)
    low, high = float(span[0]), float(span[1])
    if not (np.isfinite(low) and np.isfinite(high)):
        raise ValueError(f"a histogram needs finite values; their range is {low} to {high}")
    if low > high:
        raise ValueError(f"the range of a histogram goes up, not from {low} to {high}")
    if low == high:
        low, high = low - 0.5, high + 0.5
    return np.linspace(low, high, bins + 1)
