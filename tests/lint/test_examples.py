"""Every rule's examples are its tests: the bad lines are found, the look-alikes are silent."""

from __future__ import annotations

from typing import Any

import pytest

from ember_ml.lint import Settings, lint_source
from ember_ml.lint.rules import ALL, DEFAULT, PRELUDE, Rule
from tests.lint.conftest import Run, Write

RULES = list(ALL.values())
OFFSET = PRELUDE.count("\n")


def lines_found(code: str, snippet: str) -> set[int]:
    settings = Settings(codes=DEFAULT | {code})
    return {f.line - OFFSET for f in lint_source(PRELUDE + snippet, settings=settings) if f.code == code}


def lines_expected(snippet: str) -> set[int]:
    lines = snippet.rstrip("\n").split("\n")
    marked = {number for number, line in enumerate(lines, 1) if "# bad" in line}
    return marked or {len(lines)}


def examples(reads: str, which: str) -> list[Any]:
    return [
        pytest.param(rule.code, snippet, id=f"{rule.code}-{n}")
        for rule in RULES
        if rule.reads == reads
        for n, snippet in enumerate(getattr(rule, which))
    ]


@pytest.mark.parametrize(("code", "snippet"), examples("python", "bad"))
def test_bad_line_is_found(code: str, snippet: str) -> None:
    assert lines_found(code, snippet) == lines_expected(snippet)


@pytest.mark.parametrize(("code", "snippet"), examples("python", "good"))
def test_look_alike_is_silent(code: str, snippet: str) -> None:
    assert lines_found(code, snippet) == set()


@pytest.mark.parametrize(("code", "snippet"), examples("toml", "bad"))
def test_bad_configuration_is_found(code: str, snippet: str, emberlint: Run, write: Write) -> None:
    write("pyproject.toml", snippet)
    write("a.py", "x = 1\n")
    outcome = emberlint("a.py")
    assert outcome.code == 2
    assert code in outcome.err


@pytest.mark.parametrize(("code", "snippet"), examples("toml", "good"))
def test_good_configuration_is_silent(code: str, snippet: str, emberlint: Run, write: Write) -> None:
    write("pyproject.toml", snippet)
    write("a.py", "x = 1\n")
    outcome = emberlint("a.py")
    assert outcome.code == 0
    assert code not in outcome.err


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_there_are_enough_examples(rule: Rule) -> None:
    assert len(rule.bad) >= 8
    assert len(rule.good) >= 8
