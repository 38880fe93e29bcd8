"""The action for GitHub's workflows: its command runs, and shows findings in the form that a pull request shows."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_the_action_reports_findings(tmp_path: Path) -> None:
    yaml = pytest.importorskip("yaml")
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    step = action["runs"]["steps"][-1]
    assert step["env"] == {"PATHS": "${{ inputs.paths }}", "OPTIONS": "${{ inputs.options }}"}
    (tmp_path / "loss.py").write_text("import torch\n", encoding="utf-8")
    (tmp_path / "emberlint").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m ember_ml.lint "$@"\n', encoding="utf-8")
    (tmp_path / "emberlint").chmod(0o755)
    environment = os.environ | {
        "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT / "src"),
        "PATHS": "loss.py",
        "OPTIONS": "--no-cache",
    }
    command = ["bash", "-c", step["run"]]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    assert done.stdout.startswith("::error file=loss.py,line=1,")
    assert "EMB101" in done.stdout
