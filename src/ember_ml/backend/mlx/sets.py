"""Searching, sets and counting, on MLX."""

from __future__ import annotations
