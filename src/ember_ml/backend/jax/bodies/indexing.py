"""Indexing, on JAX."""

from __future__ import annotations
