"""Linear systems, on JAX."""

from __future__ import annotations
