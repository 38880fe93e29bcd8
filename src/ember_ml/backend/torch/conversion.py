"""Bringing data in and out, dtypes and their facts, on PyTorch."""

from __future__ import annotations
