"""Making tensors, on MLX."""

from __future__ import annotations
