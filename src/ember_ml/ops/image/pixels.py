"""Numbers of images: integers and half precision are computed in float32. Nothing here is public."""

from __future__ import annotations

from ember_ml import ops
from ember_ml.core.dtypes import EmberDType, as_dtype, float32, float64
from ember_ml.typing import Tensor

__all__: list[str] = []


def dtype_of(images: Tensor) -> EmberDType:
    """Return the dtype of images; ``TypeError`` for bools and complex numbers."""
    dtype = as_dtype(images.dtype)
    if dtype.kind not in ("int", "uint", "float"):
        raise TypeError(f"images are real numbers, not {dtype}; cast them first")
    return dtype


def to_float(x: Tensor) -> Tensor:
    """Return ``x`` in a dtype to compute with: float64 as it is, everything else in float32."""
    return x if as_dtype(x.dtype) in (float32, float64) else ops.cast(x, float32)


def as_filler(value: float, dtype: EmberDType) -> float | int | bool:
    """Return the number that stands outside of images, as their dtype has it."""
    if dtype.kind == "bool":
        return bool(value)
    if dtype.kind not in ("int", "uint"):
        return value
    limits = ops.iinfo(dtype)
    return min(max(round(value), limits.min), limits.max)


def from_float(x: Tensor, dtype: EmberDType) -> Tensor:
    """Return what was computed in a dtype of images: integers are rounded, ties to even, and cut off at their range."""
    return ops.cast(x, dtype) if dtype.kind == "float" else ops.saturate_cast(ops.round(x), dtype)
