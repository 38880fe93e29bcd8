"""Bringing data in and out, dtypes and their facts."""

from __future__ import annotations

__all__: list[str] = []
