"""Half precision in derived bodies: computed in float32, rounded once at the end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ember_ml.core.dtypes import as_dtype, bfloat16, find_dtype, float16, float32
from ember_ml.dispatch.declare import OPS
from ember_ml.typing import Tensor

__all__ = ["in_float32", "is_half"]


def is_half(x: Tensor) -> bool:
    """Whether ``x`` is of half precision."""
    dtype = find_dtype(x.dtype)
    return dtype is float16 or dtype is bfloat16


def in_float32(op: Callable[..., Tensor], *args: Any) -> Tensor:
    """The op of these arguments, those of half precision in float32; the result in the dtype of the first of them."""
    cast = OPS["cast"].function
    halves = [hasattr(arg, "dtype") and is_half(arg) for arg in args]
    wide = [cast(arg, float32) if half else arg for arg, half in zip(args, halves, strict=True)]
    return cast(op(*wide), as_dtype(args[halves.index(True)].dtype))
