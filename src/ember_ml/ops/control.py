"""Control flow: branches, loops and scans that compile where the backend compiles."""

from __future__ import annotations

__all__: list[str] = []
