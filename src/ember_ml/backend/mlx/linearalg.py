"""Linear algebra, on MLX."""

from __future__ import annotations
