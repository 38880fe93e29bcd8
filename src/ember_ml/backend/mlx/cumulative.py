"""Running sums, differences, correlation, on MLX."""

from __future__ import annotations
