"""Views and changes in place do what NumPy's do: 300 random programs on each backend here, 10,000 in the long run."""

from __future__ import annotations

import pytest

from ember_ml.backend import installed_backends
from tests.fuzz.views import run

each = pytest.mark.parametrize("backend", installed_backends())


@each
def test_random_programs(backend: str) -> None:
    assert run(backend, 300, 0) is None


@each
@pytest.mark.parametrize("mode", ["grad", "backward", "vmap"])
def test_transformed_programs(backend: str, mode: str) -> None:
    assert run(backend, 30, 0, mode) is None


@pytest.mark.long
@each
def test_many_random_programs(backend: str) -> None:
    assert run(backend, 10_000, 1) is None


@pytest.mark.long
@each
@pytest.mark.parametrize("mode", ["grad", "backward", "vmap"])
def test_many_transformed_programs(backend: str, mode: str) -> None:
    assert run(backend, 1_000, 1, mode) is None


@pytest.mark.long
@each
def test_compiled_programs(backend: str) -> None:
    assert run(backend, 10, 1, "compile") is None
