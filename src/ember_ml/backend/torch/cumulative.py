"""Running sums, differences, correlation, on PyTorch."""

from __future__ import annotations
