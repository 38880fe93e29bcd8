"""Frames of signals and what is made of them: the short-time Fourier transform and its kin."""

from __future__ import annotations

__all__: list[str] = []
