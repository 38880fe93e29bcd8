"""Reading and replacing parts of tensors, on MLX."""

from __future__ import annotations
