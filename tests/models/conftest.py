"""Models that Transformers wrote, each once for all tests."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest

from tests.reference import pretrained


@pytest.fixture(scope="session")
def written(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], pretrained.Written]:
    """Write the model of a case, at its first use."""
    root = tmp_path_factory.mktemp("models")
    return cache(lambda name: pretrained.write(name, root / name))
