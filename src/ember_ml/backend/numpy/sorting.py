"""Sorting and order statistics, on NumPy."""

from __future__ import annotations
