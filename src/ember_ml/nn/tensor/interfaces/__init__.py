"""The type of portable tensors."""

from __future__ import annotations

from ember_ml.typing import TensorInterface

__all__ = ["TensorInterface"]
