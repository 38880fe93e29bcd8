"""Windows: the weights that fade a frame in and out."""

from __future__ import annotations

__all__: list[str] = []
