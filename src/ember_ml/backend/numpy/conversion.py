"""Bringing data in and out, dtypes and their facts, on NumPy."""

from __future__ import annotations
