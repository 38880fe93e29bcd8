"""Random gradients agree with differences, and random maps with the loops that they stand for."""

from __future__ import annotations

import pytest

from ember_ml.backend import installed_backends
from tests.fuzz.watchdog import watch

each = pytest.mark.parametrize("backend", installed_backends())


@each
def test_random_gradients(backend: str) -> None:
    assert watch("tests.fuzz.gradients", backend, 200, 0, "eager") == []


@pytest.mark.long
@each
def test_many_random_gradients(backend: str) -> None:
    assert watch("tests.fuzz.gradients", backend, 3_000, 1_000, "eager") == []


@pytest.mark.long
@each
def test_many_random_maps(backend: str) -> None:
    """Map 20 calls of each op; tests/contract/test_vmap.py maps a few of each in every run."""
    assert watch("tests.fuzz.vmaps", backend, 400, 0, "eager") == []
