"""Fourier transforms, on NumPy."""

from __future__ import annotations
