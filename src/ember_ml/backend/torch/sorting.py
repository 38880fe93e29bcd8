"""Sorting and order statistics, on PyTorch."""

from __future__ import annotations
