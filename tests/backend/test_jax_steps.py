"""Compiled steps on JAX, which are repeated with the least work, follow all that changes: in every run of the tests."""

from __future__ import annotations

import pytest

import ember_ml
from tests.training.test_changes_between_steps import CHANGES, Change, compare_with_numpy

pytest.importorskip("jax")


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_counts_at_the_next_step(change: Change) -> None:
    before = ember_ml.get_backend()
    ember_ml.set_backend("jax")
    try:
        compare_with_numpy(change)
    finally:
        ember_ml.set_backend(before)
