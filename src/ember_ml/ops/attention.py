"""Attention and the rotary embedding of positions."""

from __future__ import annotations

__all__: list[str] = []
