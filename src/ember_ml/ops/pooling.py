"""Pooling: the maximum or mean of windows, in one, two and three dimensions."""

from __future__ import annotations

__all__: list[str] = []
