"""Scatter and segment ops, on NumPy."""

from __future__ import annotations
