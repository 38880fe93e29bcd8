"""Fourier transforms, on MLX."""

from __future__ import annotations
