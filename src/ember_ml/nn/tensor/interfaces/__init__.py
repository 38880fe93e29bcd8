"""What every portable tensor offers, as a type."""

from __future__ import annotations

from ember_ml.typing import TensorInterface

__all__ = ["TensorInterface"]
