"""One step of training, followed by a reader: at most so many Python calls of the package's code, once warm."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from ember_ml.backend import installed_backends

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "reader_walks.py"
WALK = "Trainer.step, Linear + SGD"
MOST = {"torch": 80, "numpy": 162, "mlx": 100}


def test_a_step_of_training_is_a_short_walk() -> None:
    # in a process of its own: variables and scopes of other tests make the walk longer
    printed = subprocess.run([sys.executable, str(SCRIPT)], capture_output=True, text=True, check=True).stdout
    rows = [line.removeprefix(WALK).split() for line in printed.splitlines() if line.startswith(WALK)]
    calls = {backend: int(count) for backend, count, *_ in rows}
    assert calls.keys() == MOST.keys() & set(installed_backends())
    assert {backend: count for backend, count in calls.items() if count > MOST[backend]} == {}
