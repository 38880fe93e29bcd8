"""Matrix factorizations and what is made of them, on PyTorch."""

from __future__ import annotations
