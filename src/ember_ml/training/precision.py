"""Mixed precision in the trainer: autocast, and for float16 a scale of the loss."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from ember_ml import ops
from ember_ml.core import trees
from ember_ml.core.dtypes import HALVES, EmberDType, as_dtype
from ember_ml.dispatch.autocast import autocast
from ember_ml.tensor.ember_tensor import EmberTensor
from ember_ml.training.state_checks import check_count, check_number, check_table
from ember_ml.typing import Tensor

__all__ = ["Precision", "compute_in", "widen"]


class Precision:
    """Computation in "bfloat16" or "float16" by ``autocast``, with parameters, gradients and loss in float32.

    float16 holds nothing below 6e-8, so that small gradients would vanish: the loss is multiplied by a ``scale`` before
    it is differentiated. Where a gradient overflows, the batch is left out and the scale halved; after ``patience``
    batches without overflow it is doubled.
    """

    dtype: EmberDType
    good: int
    patience: int

    def __init__(self, dtype: str, scale: float = 2.0**15, patience: int = 2000) -> None:
        self.dtype = as_dtype(dtype)
        if self.dtype not in HALVES:
            raise ValueError(f"mixed precision is float16 or bfloat16, not {dtype}")
        self.scale: float | None = scale if self.dtype == "float16" else None
        self.patience, self.good = patience, 0

    def unscale(self, gradients: Sequence[Tensor], strategy: Any = None) -> list[Tensor] | None:
        """Return the gradients of the loss itself; None where they have overflowed, on any process."""
        assert self.scale is not None
        is_finite = bool(ops.item(ops.all(ops.stack([ops.all(ops.isfinite(g)) for g in gradients]))))
        if strategy is not None:
            is_finite = strategy.is_everywhere(is_finite)
        if not is_finite:
            self.scale, self.good = max(self.scale / 2.0, 1.0), 0
            return None
        unscaled = [ops.divide(g, self.scale) for g in gradients]
        self.good += 1
        if self.good >= self.patience:
            self.scale, self.good = self.scale * 2.0, 0
        return unscaled

    def state(self) -> dict[str, Any]:
        """Return where the scale stands, as plain data."""
        return {"scale": self.scale, "good": self.good}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a :meth:`state`."""
        check_table(state, "the precision", "scale", "good")
        scale = None if state["scale"] is None else check_number(state, "scale")
        if (scale is None) != (self.scale is None) or (scale is not None and not 1.0 <= scale < math.inf):
            raise ValueError(f"{self.dtype} does not have the scale {scale!r}")
        self.scale, self.good = scale, check_count(state, "good")


def compute_in(precision: Precision | None) -> AbstractContextManager[Any]:
    """Return a block that computes in this precision: a block of ``autocast``, or one that changes nothing."""
    return nullcontext() if precision is None else autocast(precision.dtype)


def widen(x: Any) -> Any:
    """Return the tensors in ``x`` that are of half precision in float32, and everything else as it is."""
    return trees.map_tree(_widen_leaf, x)


def _widen_leaf(x: Any) -> Any:
    is_tensor = type(x) is EmberTensor or hasattr(x, "dtype")
    return ops.cast(x, "float32") if is_tensor and as_dtype(x.dtype) in HALVES else x
