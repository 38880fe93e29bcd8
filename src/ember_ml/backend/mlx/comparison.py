"""Comparison and logic, on MLX."""

from __future__ import annotations
