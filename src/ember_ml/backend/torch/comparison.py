"""Comparison and logic, on PyTorch."""

from __future__ import annotations
