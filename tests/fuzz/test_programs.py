"""Random programs of ops agree with NumPy at every step: 60 here, 5,000 in the long run."""

from __future__ import annotations

import pytest

from ember_ml.backend import installed_backends
from tests.fuzz.programs import run


@pytest.mark.parametrize("backend", installed_backends())
def test_random_programs(backend: str) -> None:
    assert run(backend, 60, 0) == []


@pytest.mark.long
@pytest.mark.parametrize("backend", installed_backends())
def test_many_random_programs(backend: str) -> None:
    assert run(backend, 5_000, 1_000) == []
