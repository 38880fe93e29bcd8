"""Comparison of what was computed, on whichever device, with references."""

from __future__ import annotations

from typing import Any

from ember_ml import ops
from tests.reference import tables

__all__ = ["assert_close", "assert_learnt"]


def assert_close(found: Any, expected: Any, tolerance: float = 1e-5) -> None:
    """Agreement to ``tolerance`` of the largest expected value."""
    expected = ops.to_numpy(expected) if ops.is_tensor(expected) else expected  # Python's floats stay double
    tables.assert_close(ops.to_numpy(found), expected, tolerance)


def assert_learnt(ours: Any, theirs: Any, names: str, tolerance: float = 1e-5) -> None:
    """Agreement of what two estimators learnt under these names."""
    for name in names.split():
        assert_close(getattr(ours, name), getattr(theirs, name), tolerance)
