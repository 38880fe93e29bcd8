"""Convolutions of neural networks, in one, two and three dimensions."""

from __future__ import annotations

__all__: list[str] = []
