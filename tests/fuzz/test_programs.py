"""Random programs of ops agree with NumPy at every step: 200 here, 5,000 in the long run."""

from __future__ import annotations

import pytest

from ember_ml.backend import installed_backends
from tests.fuzz.watchdog import watch

each = pytest.mark.parametrize("backend", installed_backends())


@each
def test_random_programs(backend: str) -> None:
    assert watch("tests.fuzz.programs", backend, 200, 0, "eager") == []


@pytest.mark.long
@each
def test_many_random_programs(backend: str) -> None:
    assert watch("tests.fuzz.programs", backend, 5_000, 1_000, "eager") == []


@pytest.mark.long
@each
def test_compiled_programs(backend: str) -> None:
    assert watch("tests.fuzz.programs", backend, 20, 0, "compiled") == []
