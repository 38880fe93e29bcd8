"""Reshaping, joining, splitting, padding, flipping, on PyTorch."""

from __future__ import annotations
