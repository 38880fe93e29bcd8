"""Comparison and logic, on NumPy."""

from __future__ import annotations
