"""Every rule's examples are its tests: the bad lines are found, the look-alikes are silent."""

from __future__ import annotations

import pytest

from ember_ml.lint import Settings, lint_source
from ember_ml.lint.rules import ALL, DEFAULT, PRELUDE

WALKED = [rule for rule in ALL.values() if rule.bad]
OFFSET = PRELUDE.count("\n")


def lines_found(code: str, snippet: str) -> set[int]:
    settings = Settings(codes=DEFAULT | {code})
    return {f.line - OFFSET for f in lint_source(PRELUDE + snippet, settings=settings) if f.code == code}


def lines_expected(snippet: str) -> set[int]:
    lines = snippet.rstrip("\n").split("\n")
    marked = {number for number, line in enumerate(lines, 1) if "# bad" in line}
    return marked or {len(lines)}


BAD = [pytest.param(rule.code, snippet, id=f"{rule.code}-{n}") for rule in WALKED for n, snippet in enumerate(rule.bad)]
GOOD = [
    pytest.param(rule.code, snippet, id=f"{rule.code}-{n}") for rule in WALKED for n, snippet in enumerate(rule.good)
]


@pytest.mark.parametrize(("code", "snippet"), BAD)
def test_bad_line_is_found(code: str, snippet: str) -> None:
    assert lines_found(code, snippet) == lines_expected(snippet)


@pytest.mark.parametrize(("code", "snippet"), GOOD)
def test_look_alike_is_silent(code: str, snippet: str) -> None:
    assert lines_found(code, snippet) == set()


@pytest.mark.parametrize("rule", WALKED, ids=lambda rule: rule.code)
def test_there_are_enough_examples(rule) -> None:
    assert len(rule.bad) >= 8
    assert len(rule.good) >= 8
