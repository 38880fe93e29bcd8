"""Bringing data in and out, dtypes and their facts, on MLX."""

from __future__ import annotations
