"""Searching, sets and counting, on NumPy."""

from __future__ import annotations
