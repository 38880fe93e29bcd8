"""Reading and replacing parts of tensors, on NumPy."""

from __future__ import annotations
