"""No call can kill the process or raise what is not documented: 2,000 random calls here, 100,000 in the long run."""

from __future__ import annotations

import pytest

from ember_ml.backend import installed_backends
from tests.fuzz.watchdog import watch


@pytest.mark.parametrize("backend", installed_backends())
def test_random_calls(backend: str) -> None:
    assert watch("tests.fuzz.calls", backend, 2_000, 0, "eager") == []


@pytest.mark.long
@pytest.mark.parametrize("backend", installed_backends())
def test_many_random_calls(backend: str) -> None:
    assert watch("tests.fuzz.calls", backend, 100_000, 1, "eager") == []
