"""Facts of arrays, dtypes and shapes, as NumPy and ml_dtypes know them."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
from hypothesis import strategies as st

from tests.reference import arrays, broadcastable, numpy_dtype

__all__ = ["any_array", "float_facts", "integer_facts", "joined_shape", "shape_groups"]


def any_array(dtype: str) -> st.SearchStrategy[Any]:
    return arrays(dtype)


def float_facts(dtype: str) -> tuple[int, float, float, float, float]:
    """The bits, the precision, and the largest, smallest and smallest normal number."""
    part = {"complex64": "float32", "complex128": "float64"}.get(dtype, dtype)
    info = ml_dtypes.finfo(numpy_dtype(part))
    return info.bits, float(info.eps), float(info.max), float(info.min), float(info.smallest_normal)


def integer_facts(dtype: str) -> tuple[int, int, int]:
    """The bits, the largest and the smallest number."""
    info = np.iinfo(dtype)
    return info.bits, int(info.max), int(info.min)


def shape_groups(number: int) -> st.SearchStrategy[tuple[tuple[int, ...], ...]]:
    return broadcastable(number)


def joined_shape(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    return np.broadcast_shapes(*shapes)
