"""Reading and replacing parts of tensors, on PyTorch."""

from __future__ import annotations
