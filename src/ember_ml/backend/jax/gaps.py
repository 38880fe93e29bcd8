"""What JAX cannot compute, and why: kept as data; a test fails when an entry is no longer true."""

from __future__ import annotations

__all__ = ["gaps"]

gaps: dict[tuple[str, str], str] = {}
