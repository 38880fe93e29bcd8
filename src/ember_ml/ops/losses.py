"""Losses: how far predictions are from what they should be."""

from __future__ import annotations

__all__: list[str] = []
