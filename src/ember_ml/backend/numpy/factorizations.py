"""Matrix factorizations and what is made of them, on NumPy."""

from __future__ import annotations
