"""Scatter and segment ops, on MLX."""

from __future__ import annotations
