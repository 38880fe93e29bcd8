"""Layers that mix the positions of a sequence."""

from __future__ import annotations

__all__: list[str] = []
