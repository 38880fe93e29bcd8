"""What every dtype offers, as a type."""

from __future__ import annotations

from ember_ml.typing import DTypeInterface

__all__ = ["DTypeInterface"]
