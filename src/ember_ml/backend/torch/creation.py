"""Making tensors, on PyTorch."""

from __future__ import annotations
