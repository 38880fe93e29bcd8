"""Compute half precision in float32 where MLX has no kernel for it, or no accurate one."""

from __future__ import annotations

from typing import Any

import mlx.core as mx

from ember_ml.backend.contract import Body
from ember_ml.core import dtypes as dt
from ember_ml.core.dtypes import EmberDType

__all__ = ["in_float32"]

_HALVES = (mx.float16, mx.bfloat16)


def in_float32(native: Body) -> dict[EmberDType, Body]:
    """Return bodies for float16 and bfloat16 that run ``native`` in float32 and cast a float32 result back."""

    def body(x: mx.array, *args: Any) -> Any:
        wide = (y.astype(mx.float32) if isinstance(y, mx.array) and y.dtype in _HALVES else y for y in args)
        result = native(x.astype(mx.float32), *wide)
        return result.astype(x.dtype) if result.dtype == mx.float32 else result

    return dict.fromkeys(dt.HALVES, body)
