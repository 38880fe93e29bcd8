"""Random numbers: one seed gives the same numbers on every backend."""

from __future__ import annotations

__all__: list[str] = []
