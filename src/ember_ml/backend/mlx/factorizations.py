"""Matrix factorizations and what is made of them, on MLX."""

from __future__ import annotations
