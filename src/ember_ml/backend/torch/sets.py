"""Searching, sets and counting, on PyTorch."""

from __future__ import annotations
