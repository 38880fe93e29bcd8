"""Compute half precision in float32 where PyTorch has no kernel for it, or no accurate one."""

from __future__ import annotations

from typing import Any

import torch

from ember_ml.backend.contract import Body
from ember_ml.core import dtypes as dt
from ember_ml.core.dtypes import EmberDType

__all__ = ["HALVES", "in_float32"]

HALVES = (torch.float16, torch.bfloat16)


def in_float32(native: Body) -> dict[EmberDType, Body]:
    """Return bodies for float16 and bfloat16 that run ``native`` in float32 and cast a float32 result back."""

    def of(dtype: torch.dtype) -> Body:
        def body(*args: Any) -> Any:
            wide = (x.to(torch.float32) if isinstance(x, torch.Tensor) and x.dtype is dtype else x for x in args)
            result = native(*wide)
            return result.to(dtype) if result.dtype is torch.float32 else result

        return body

    return {dt.float16: of(torch.float16), dt.bfloat16: of(torch.bfloat16)}
