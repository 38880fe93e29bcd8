"""A small project on disk and the command to run on it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from ember_ml.lint import config
from ember_ml.lint.cli import main


@dataclass
class Outcome:
    """What a run of the command gave."""

    code: int
    out: str
    err: str


Run = Callable[..., Outcome]
Write = Callable[[str, str], Path]


@pytest.fixture
def emberlint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the command in ``tmp_path``."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> Outcome:
        config.forget()
        code = main(list(arguments))
        captured = capsys.readouterr()
        return Outcome(code, captured.out, captured.err)

    return run


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a file below ``tmp_path``."""

    def save(name: str, text: str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    return save
