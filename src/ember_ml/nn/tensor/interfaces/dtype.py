"""The type of dtypes."""

from __future__ import annotations

from ember_ml.typing import DTypeInterface

__all__ = ["DTypeInterface"]
