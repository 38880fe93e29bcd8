"""Reading and replacing parts of tensors."""

from __future__ import annotations

__all__: list[str] = []
