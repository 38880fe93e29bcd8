"""Sorting and order statistics, on MLX."""

from __future__ import annotations
