"""Views and changes in place do what NumPy's do: 300 random programs on each backend here, 10,000 in the long run."""

from __future__ import annotations

import pytest

import ember_ml
from ember_ml.backend import installed_backends
from tests.fuzz.views import make_check

each = pytest.mark.parametrize("backend", installed_backends())


def run(backend: str, count: int, seed: int, mode: str = "eager") -> list[str]:
    """Return what is wrong with programs that are run in this process."""
    before = ember_ml.get_backend()
    try:
        check = make_check(backend, mode)
        return [fault for number in range(seed, seed + count) for fault in check(number)]
    finally:
        ember_ml.set_backend(before)


@each
def test_random_programs(backend: str) -> None:
    assert run(backend, 300, 0) == []


@each
@pytest.mark.parametrize("mode", ["grad", "backward", "vmap"])
def test_transformed_programs(backend: str, mode: str) -> None:
    assert run(backend, 30, 0, mode) == []


@pytest.mark.long
@each
def test_many_random_programs(backend: str) -> None:
    assert run(backend, 10_000, 1_000) == []


@pytest.mark.long
@each
@pytest.mark.parametrize("mode", ["grad", "backward", "vmap"])
def test_many_transformed_programs(backend: str, mode: str) -> None:
    assert run(backend, 1_000, 1_000, mode) == []


@pytest.mark.long
@each
def test_compiled_programs(backend: str) -> None:
    assert run(backend, 10, 1_000, "compile") == []
