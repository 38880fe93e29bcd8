"""Making tensors, on NumPy."""

from __future__ import annotations
