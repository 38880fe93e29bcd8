"""A job or two under random faults, on each backend; ``python -m tests.fuzz.faults`` has as many as one likes."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.distributed.namespaces import MissingRights
from tests.fuzz import faults

pytestmark = pytest.mark.long


def test_a_disturbed_job_ends_with_the_same_weights(backend: str, tmp_path: Path) -> None:
    for name in ("undisturbed", "disturbed"):
        (tmp_path / name).mkdir()
    try:
        expected = faults.train_undisturbed(backend, tmp_path / "undisturbed")
    except MissingRights as error:
        pytest.skip(f"a job cannot have a network and a disk of its own here: {error}")
    outcome = faults.run_job(backend, tmp_path / "disturbed", 5, expected, random.Random(backend))
    assert not outcome.wrong, outcome.wrong
    assert outcome.faults
