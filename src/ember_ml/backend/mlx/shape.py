"""Reshaping, joining, splitting, padding, flipping, on MLX."""

from __future__ import annotations
