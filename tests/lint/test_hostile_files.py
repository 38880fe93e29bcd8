"""Files that no editor writes: they are reported or passed over, in time, and end no run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest


def lint(folder: Path, *paths: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ember_ml.lint", "--no-cache", "--quiet", "--jobs", "1", *paths]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=100)
    assert "Traceback" not in done.stderr, done.stderr
    return done


def test_tuples_in_tuples_in_tuples(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\n" + "x = (x, x)\n" * 200)
    assert lint(tmp_path, "a.py").returncode == 0


def test_a_coding_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes(b"# coding: undefined\nx = 1\n")
    done = lint(tmp_path, "a.py")
    assert done.returncode == 2
    assert "EMB900 cannot be decoded" in done.stdout


def test_a_configuration_without_end(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.emberlint]\nx = " + "[" * 5000 + "]" * 5000)
    (tmp_path / "a.py").write_text("x = 1\n")
    done = lint(tmp_path, "a.py")
    assert done.returncode == 2
    assert "not valid TOML" in done.stderr


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="there are no devices")
def test_links_that_lead_nowhere_and_devices_are_passed_over(tmp_path: Path) -> None:
    os.symlink("user@host.1234", tmp_path / ".#a.py")  # as Emacs locks a file
    os.symlink("/dev/zero", tmp_path / "zero.py")
    (tmp_path / "b.py").write_text("import numpy\n")
    done = lint(tmp_path, ".")
    assert done.returncode == 1
    assert "b.py:1:1: EMB101" in done.stdout
    assert lint(tmp_path, "/dev/zero").returncode == 2


def test_long_lines_take_no_longer_than_short_ones(tmp_path: Path) -> None:
    (tmp_path / "long.py").write_text("import numpy as np\nf(" + ", ".join(["np.abs(1)"] * 4000) + ")\n")
    (tmp_path / "short.py").write_text("import numpy as np\n" + "np.abs(1)\n" * 4000)
    seconds = {}
    for name in ("short.py", "long.py"):
        before = time.perf_counter()
        assert lint(tmp_path, name).stdout.count("EMB201") == 4000
        seconds[name] = time.perf_counter() - before
    assert seconds["long.py"] < 4 * seconds["short.py"] + 5
    code = {"cell_type": "code", "source": " " * 200_000 + "x", "metadata": {}, "outputs": [], "execution_count": None}
    (tmp_path / "spaces.ipynb").write_text(json.dumps({"cells": [code], "nbformat": 4, "nbformat_minor": 5}))
    before = time.perf_counter()
    lint(tmp_path, "spaces.ipynb")
    assert time.perf_counter() - before < 4 * seconds["short.py"] + 5
