"""Check the limits of activations, for every backend."""

from __future__ import annotations

__all__ = ["check_threshold"]


def check_threshold(threshold: float) -> None:
    """Raise ValueError for a distance to shrink by that is negative or NaN."""
    if not threshold >= 0:
        raise ValueError(f"elements shrink by a threshold of at least 0, not {threshold}")
