"""Filtering: convolution of signals, and resampling."""

from __future__ import annotations

__all__: list[str] = []
