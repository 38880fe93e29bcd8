"""What a backend cannot compute, and why: the gaps that hardware or library force, kept as data by each backend.

`ember-ml ops --gaps`, the reference pages and the tests read them; a test fails when an entry is no longer true.
"""

from __future__ import annotations

from ember_ml.backend.contract import Backend

__all__ = ["ANY", "gap_reason"]

ANY = "*"
"""Stands for every op in a backend's ``gaps``."""


def gap_reason(backend: Backend, op: str, dtype: str) -> str | None:
    """Return why ``backend`` cannot compute ``op`` in ``dtype``, or None where it can."""
    return backend.gaps.get((op, dtype)) or backend.gaps.get((ANY, dtype))
