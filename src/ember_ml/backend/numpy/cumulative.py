"""Running sums, differences, correlation, on NumPy."""

from __future__ import annotations
