"""Normalizations: layer, RMS, batch and group."""

from __future__ import annotations

__all__: list[str] = []
