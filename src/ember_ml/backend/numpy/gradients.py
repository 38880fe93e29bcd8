"""NumPy has no gradients of its own: the tape brings them, and adds them up here."""

from __future__ import annotations

from typing import Any

__all__ = ["accumulate"]


def accumulate(total: Any, gradient: Any) -> Any:
    """Return the sum, in the memory of ``total``."""
    total += gradient
    return total
