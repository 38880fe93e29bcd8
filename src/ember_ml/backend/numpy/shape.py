"""Reshaping, joining, splitting, padding, flipping, on NumPy."""

from __future__ import annotations
