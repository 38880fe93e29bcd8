"""No call can kill the process or raise what is not documented: 2,000 random calls here, 100,000 in the long run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ember_ml.backend import installed_backends

ROOT = Path(__file__).parents[2]


def _fuzz(backend: str, calls: int, seed: int, log: Path) -> None:
    command = [sys.executable, "-m", "tests.fuzz.random_calls", backend, str(calls), str(seed), str(log)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    last = log.read_text() if log.exists() else ""
    assert done.returncode == 0, f"exit {done.returncode}\n{done.stdout}\n{done.stderr[-2000:]}\nlast call: {last}"


@pytest.mark.parametrize("backend", installed_backends())
def test_random_calls(backend: str, tmp_path: Path) -> None:
    _fuzz(backend, 2_000, 0, tmp_path / "calls.log")


@pytest.mark.long
@pytest.mark.parametrize("backend", installed_backends())
def test_many_random_calls(backend: str, tmp_path: Path) -> None:
    _fuzz(backend, 100_000, 1, tmp_path / "calls.log")
