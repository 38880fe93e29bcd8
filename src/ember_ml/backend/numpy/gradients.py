"""NumPy has no gradients of its own: the tape brings them."""

from __future__ import annotations

from typing import Any

__all__ = ["stop_gradient"]


def stop_gradient(x: Any) -> Any:
    return x
