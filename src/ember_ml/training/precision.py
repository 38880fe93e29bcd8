"""Mixed precision: the model computes in half precision, its parameters stay what they are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ember_ml import ops
from ember_ml.backend.selection import active
from ember_ml.core import trees
from ember_ml.core.dtypes import HALVES, EmberDType, as_dtype
from ember_ml.nn.modules.module import Module
from ember_ml.tensor.ember_tensor import EmberTensor
from ember_ml.tensor.variable import keep, own, put_back
from ember_ml.training.batches import apply_model
from ember_ml.training.state_checks import check_count, check_number, check_table
from ember_ml.typing import Tensor

__all__ = ["Precision"]


class Precision:
    """Computation in "bfloat16" or "float16" with parameters, gradients and loss in float32.

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

    def compute(self, model: Module, x: Any) -> Any:
        """Run the model on ``x`` in half precision and return its result in float32; its parameters stay as they are.

        Parameters, frozen ones too, and inputs are cast; buffers and constants that ``forward`` makes are not.
        """
        backend = active()
        parameters = [p for p in model.parameters() if p.dtype.kind == "float"]
        kept = keep(parameters)
        try:
            for parameter in parameters:
                held = parameter.held if parameter.home is backend else own(parameter.held, backend)
                parameter.held, parameter.home = ops.cast(held, self.dtype), backend
            return trees.map_tree(_widen, apply_model(model, trees.map_tree(self._halve, x)))
        except TypeError as error:
            raise TypeError(
                f"{error}. With precision={self.dtype.name!r} parameters and inputs are {self.dtype.name}, while "
                "buffers and tensors made in forward keep their dtype: cast those to that of the input, "
                "ops.cast(table, ops.dtype(x))"
            ) from error
        finally:
            put_back(kept)

    def _halve(self, x: Any) -> Any:
        dtype = getattr(x, "dtype", None)
        return ops.cast(x, self.dtype) if dtype is not None and as_dtype(dtype).kind == "float" else x

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


def _widen(x: Any) -> Any:
    is_tensor = type(x) is EmberTensor or hasattr(x, "dtype")
    return ops.cast(x, "float32") if is_tensor and as_dtype(x.dtype) in HALVES else x
