"""Linear algebra, on NumPy."""

from __future__ import annotations
