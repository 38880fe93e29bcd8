"""Neural networks and the portable tensors that they compute with."""

from __future__ import annotations

from ember_ml.nn import modules, tensor

__all__ = ["modules", "tensor"]
