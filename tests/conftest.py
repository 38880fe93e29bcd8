"""Fixtures that every test shares: each test of behaviour runs on each installed backend."""

from collections.abc import Iterator

import pytest

import ember_ml
from ember_ml.backend import installed_backends


@pytest.fixture(params=installed_backends())
def backend(request: pytest.FixtureRequest) -> Iterator[str]:
    """Make one installed backend the active one for a test, and give its name."""
    before = ember_ml.get_backend()
    ember_ml.set_backend(request.param)
    yield request.param
    ember_ml.set_backend(before)
