"""Scatter and segment ops, on PyTorch."""

from __future__ import annotations
