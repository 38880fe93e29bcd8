"""Saving tensors to files, and loading them."""

from __future__ import annotations

__all__: list[str] = []
