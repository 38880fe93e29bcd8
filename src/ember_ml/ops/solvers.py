"""Solvers, written on ops: linear systems by iteration, roots, differential equations."""

from __future__ import annotations

__all__: list[str] = []
