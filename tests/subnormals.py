"""Which backends compute with subnormal numbers, those below the smallest normal one of a dtype."""

from __future__ import annotations

from ember_ml.backend import load

__all__ = ["keeps_subnormals"]


def keeps_subnormals(backend: str) -> bool:
    """Whether the backend does not say that it takes such numbers for 0."""
    return "subnormal numbers" not in load(backend).notes
